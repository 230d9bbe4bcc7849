// Templates against jinja2 3.1.6 as transformers sets it up (tests/oracle/jinja_oracle.py).
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/text/template_cases.h"

namespace kvasir::test {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), "cannot open ", path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

const Json& fixtures() {
  static const Json all = Json::parse(read_text(std::string(TEXT_TEST_DATA) + "/jinja.json"));
  return all;
}

std::string template_source(const std::string& name) {
  return read_text(std::string(TEMPLATE_CORPUS) + "/" + name + ".jinja");
}

/// Empty when our result is the reference's: equal text, or an error for an error, with the
/// template's own message where it raised one.
std::string difference(const Json& right, const Result<std::vector<TemplateSpan>>& ours) {
  if (right.contains("text")) {
    if (!ours) return "an error: " + ours.error().message;
    return joined(*ours) == right["text"].get<std::string>() ? "" : "text: " + joined(*ours);
  }
  if (ours) return "no error but: " + joined(*ours);
  const std::string raised = "TemplateError: ";
  const auto message = right["error"].get<std::string>();
  if (!message.starts_with(raised)) return "";
  const bool found = ours.error().message.find(message.substr(raised.size())) != std::string::npos;
  return found ? "" : "another error: " + ours.error().message;
}

}  // namespace

TEST_CASE(
    "given templates as on model hubs, when conversations are rendered, then text and errors "
    "are jinja2's") {
  int n_cases = 0;
  for (const auto& [name, by_conversation] : fixtures()["results"].items()) {
    const std::string source = template_source(name);
    for (const auto& [conversation, results] : by_conversation.items()) {
      for (size_t i = 0; i < results.size(); ++i) {
        Json input = fixtures()["settings"][i];
        input["messages"] = fixtures()["conversations"][conversation];
        CAPTURE(name);
        CAPTURE(conversation);
        CAPTURE(i);
        CHECK(difference(results[i], render(source, input)) == "");
        ++n_cases;
      }
    }
  }
  CHECK(fixtures()["results"].size() >= 40);
  CHECK(n_cases >= 1000);
}

TEST_CASE("given random expressions, when they are printed, then text and errors are jinja2's") {
  Json input;
  input["variables"] = fixtures()["variables"];
  for (const auto& pair : fixtures()["expressions"]) {
    const auto source = pair[0].get<std::string>();
    CAPTURE(source);
    CHECK(difference(pair[1], render(source, input)) == "");
  }
  CHECK(fixtures()["expressions"].size() >= 300);
}

TEST_CASE(
    "given the fuzzer's corpus, when its templates are counted, then every one has a fixture") {
  size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TEMPLATE_CORPUS)) {
    ++n_files;
    CHECK_MESSAGE(fixtures()["results"].contains(entry.path().stem().string()),
                  entry.path().string());
  }
  CHECK(n_files == fixtures()["results"].size());
}

TEST_CASE(
    "given the template of case T17, when both runs are rendered, then they are as computed") {
  const std::string source = template_source("t17");
  Json input;
  input["messages"] = fixtures()["conversations"]["t17"];
  const Json all = input["messages"];
  input["messages"].erase(5);
  input["messages"].erase(4);
  input["add_generation_prompt"] = true;
  const auto first = render(source, input);
  REQUIRE(first.ok());
  CHECK(joined(*first) ==
        "<SYSTEM>\nbe brief\n<USER>\none\n<ASSISTANT>\ntwo\n<USER*>\nthree\n"
        "{\"k\": \"é\\\"<\", \"n\": null, \"b\": true, \"l\": [1, 2.0]}\n<BOT>");
  input["messages"] = all;
  input["add_generation_prompt"] = false;
  const auto second = render(source, input);
  REQUIRE(second.ok());
  CHECK(joined(*second) ==
        "<SYSTEM>\nbe brief\n<USER>\none\n<ASSISTANT>\ntwo\n<USER>\nthree\n"
        "{\"k\": \"é\\\"<\", \"n\": null, \"b\": true, \"l\": [1, 2.0]}\n");
}

}  // namespace kvasir::test
