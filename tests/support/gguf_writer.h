// Writes small GGUF files for tests (format v3), well-formed unless a test asks otherwise.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"

namespace kvasir::test {

class GgufWriter {
 public:
  void text(const std::string& key, const std::string& value) {
    begin(key, 8);
    put_string(metadata_, value);
  }
  void u32(const std::string& key, uint32_t value) { scalar(key, 4, value); }
  void f32(const std::string& key, float value) { scalar(key, 6, value); }
  void boolean(const std::string& key, bool value) { scalar<uint8_t>(key, 7, value ? 1 : 0); }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    begin_array(key, 8, values.size());
    for (const auto& value : values) put_string(metadata_, value);
  }
  void ints(const std::string& key, const std::vector<int32_t>& values) {
    begin_array(key, 5, values.size());
    for (const auto value : values) put(metadata_, value);
  }
  void floats(const std::string& key, const std::vector<float>& values) {
    begin_array(key, 6, values.size());
    for (const auto value : values) put(metadata_, value);
  }

  /// `shape` in file order (columns first); `bytes` are the tensor's data.
  void tensor(const std::string& name, const std::vector<uint64_t>& shape, DType dtype,
              const void* bytes, size_t size) {
    tensors_.push_back({name, shape, dtype, std::string(static_cast<const char*>(bytes), size)});
  }
  void tensor(const std::string& name, const std::vector<uint64_t>& shape,
              const std::vector<float>& values) {
    tensor(name, shape, DType::f32, values.data(), values.size() * sizeof(float));
  }
  void remove_tensor(const std::string& name) {
    std::erase_if(tensors_, [&](const auto& t) { return t.name == name; });
  }

  std::string bytes() const {
    std::string out = "GGUF";
    put<uint32_t>(out, 3);
    put<uint64_t>(out, tensors_.size());
    put<uint64_t>(out, n_metadata_);
    out += metadata_;
    uint64_t offset = 0;
    for (const auto& t : tensors_) {
      put_string(out, t.name);
      put<uint32_t>(out, static_cast<uint32_t>(t.shape.size()));
      for (const auto size : t.shape) put<uint64_t>(out, size);
      put<uint32_t>(out, static_cast<uint32_t>(t.dtype));
      put<uint64_t>(out, offset);
      offset = align(offset + t.data.size());
    }
    out.resize(align(out.size()));
    const size_t start = out.size();
    for (const auto& t : tensors_) {
      out += t.data;
      out.resize(start + align(out.size() - start));
    }
    return out;
  }

  /// Writes the file; returns its path.
  std::string write(const std::string& path) const {
    const std::string all = bytes();
    if (std::FILE* file = std::fopen(path.c_str(), "wb")) {
      std::fwrite(all.data(), 1, all.size(), file);
      std::fclose(file);
    }
    return path;
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> shape;
    DType dtype;
    std::string data;
  };
  static uint64_t align(uint64_t n) { return (n + 31) / 32 * 32; }
  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  static void put_string(std::string& out, const std::string& value) {
    put<uint64_t>(out, value.size());
    out += value;
  }
  void begin(const std::string& key, uint32_t type) {
    put_string(metadata_, key);
    put(metadata_, type);
    n_metadata_++;
  }
  void begin_array(const std::string& key, uint32_t element_type, size_t count) {
    begin(key, 9);
    put(metadata_, element_type);
    put<uint64_t>(metadata_, count);
  }
  template <class T>
  void scalar(const std::string& key, uint32_t type, T value) {
    begin(key, type);
    put(metadata_, value);
  }

  std::string metadata_;
  uint64_t n_metadata_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace kvasir::test
