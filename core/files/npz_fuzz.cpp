// libFuzzer entry of the .npz reader: any bytes give members or an error, in bounded time and
// memory; every view lies inside the bytes.
#include <cstddef>
#include <cstdint>

#include "core/files/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvasir;  // NOLINT
  const auto archive = npz::Archive::parse({reinterpret_cast<const std::byte*>(data), size});
  if (!archive) {
    if (archive.error().message.empty()) __builtin_trap();  // every refusal says why
    return 0;
  }
  for (const auto& member : archive->members()) {
    const auto array = npy::parse(member.data, member.name);
    if (!array) {
      if (array.error().message.empty()) __builtin_trap();
      continue;
    }
    // The shape's elements are there, to the last byte.
    uint64_t bytes = npy::element_bytes(array->element);
    for (const int64_t dimension : array->shape) bytes *= static_cast<uint64_t>(dimension);
    if (bytes != array->data.size()) __builtin_trap();
    if (bytes > 0) asm volatile("" : : "r"(array->data.front()), "r"(array->data.back()));
  }
  (void)archive->array("logits");
  (void)archive->check_sum("logits");
  return 0;
}
