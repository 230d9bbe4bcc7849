// Compiled against the installed headers and libraries only: a stranger's first program.
#include <kvasir/cancel.h>
#include <kvasir/result.h>

#include <cstdio>
#include <string>

static kvasir::Result<int> half_of(int n) {
  if (n % 2 != 0) return kvasir::Error{kvasir::ErrorCode::invalid_argument, std::to_string(n) + " is odd"};
  return n / 2;
}

int main() {
  kvasir::CancelToken cancel;
  cancel.request();
  const auto good = half_of(6);
  const auto bad = half_of(7);
  const bool right = good && *good == 3 && !bad && bad.error().message == "7 is odd" && cancel.requested();
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
