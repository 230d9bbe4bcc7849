#include "cli/machine.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <histedit.h>
#include <pcre2.h>
#include <utf8proc.h>
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace kvasir::cli {
namespace {

/// The text after the colon of the first line that begins with one of `names`.
std::string cpuinfo(std::initializer_list<std::string_view> names) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    for (const auto name : names) {
      if (line.compare(0, name.size(), name) == 0) return line.substr(colon + 2);
    }
  }
  return "";
}

std::string dotted(unsigned number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace

std::string cpu_name() {
  const auto name = cpuinfo({"model name", "Model", "CPU part"});
  return name.empty() ? "unknown" : name;
}

std::vector<std::string> cpu_features() {
  // x86-64, then arm64.
  static constexpr std::string_view kKnown[] = {
      "avx",      "avx2",     "fma",         "f16c",        "avx_vnni",    "avx512f",  "avx512bw",
      "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8",
      "amx_bf16", "asimd",    "asimdhp",     "asimddp",     "i8mm",        "bf16",     "sve"};
  std::istringstream all(cpuinfo({"flags", "Features"}));
  std::vector<std::string> features;
  for (std::string feature; all >> feature;) {
    if (std::find(std::begin(kKnown), std::end(kKnown), feature) != std::end(kKnown))
      features.push_back(feature);
  }
  return features;
}

std::vector<std::pair<std::string, std::string>> library_versions() {
  char pcre2[64] = "";
  pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
  return {{"CLI11", CLI11_VERSION},
          {"fmt", dotted(FMT_VERSION)},
          {"libedit", fmt::format("{}.{}", LIBEDIT_MAJOR, LIBEDIT_MINOR)},
          {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                        NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
          {"PCRE2", pcre2},
          {"utf8proc", utf8proc_version()},
          {"xxHash", dotted(XXH_versionNumber())}};
}

}  // namespace kvasir::cli
