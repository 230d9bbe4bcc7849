// libFuzzer entry of the GGUF reader: any bytes give a
// header or an error, in bounded time and memory; every view lies inside the bytes.
#include <cstddef>
#include <cstdint>

#include "core/files/gguf.h"

namespace {

/// Touches the first and last byte of a view, so that the sanitizer sees one that is outside.
void touch(const std::byte* data, uint64_t size) {
  if (size == 0) return;
  asm volatile("" : : "r"(data[0]), "r"(data[size - 1]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvasir;  // NOLINT
  const auto header = gguf::Header::parse({reinterpret_cast<const std::byte*>(data), size});
  if (!header) {
    if (header.error().message.empty()) __builtin_trap();  // every refusal says why
    return 0;
  }
  for (const auto& tensor : header->tensors()) {
    touch(tensor.data, tensor.size_bytes);
    if (header->find_tensor(tensor.name) != &tensor) __builtin_trap();
  }
  for (const auto& entry : header->metadata()) {
    if (header->find(entry.key) != &entry) __builtin_trap();
    // One of the typed calls succeeds at most; none may break.
    (void)header->get_int(entry.key);
    (void)header->get_float(entry.key);
    (void)header->get_floats(entry.key);
    (void)header->get_ints(entry.key);
    if (const auto strings = header->get_strings(entry.key)) {
      for (const auto& text : *strings)
        touch(reinterpret_cast<const std::byte*>(text.data()), text.size());
    }
  }
  return 0;
}
