// Renders one template a line for tests/oracle/jinja_oracle.py: a JSON object in, {"text", "spans"}
// or
// {"error"} out. The clock stands at 2024-02-03 16:05:09, as the oracle's does.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/text/template_cases.h"

int main() {
  using kvasir::test::Json;
  for (std::string line; std::getline(std::cin, line);) {
    const Json input = Json::parse(line);
    const auto rendered = kvasir::test::render(input["template"].get<std::string>(), input);
    Json answer;
    if (rendered) {
      answer["text"] = kvasir::test::joined(*rendered);
      for (const auto& span : *rendered) answer["spans"].push_back({span.text, span.is_content});
    } else {
      answer["error"] = rendered.error().message;
    }
    std::cout << answer.dump() << "\n";
  }
}
