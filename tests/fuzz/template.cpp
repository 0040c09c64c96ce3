// A template: whatever it is, it is refused or rendered within its limits.
#include <cstdint>
#include <cstdlib>

#include "handlebars/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  constexpr size_t kMost = 10'000;
  static JsonDocument document;
  static const auto kData = document.parse(
      R"({"a":"x<y","b":{"c":[1,2.5,{"d":null}]},"l":["p","q"],"o":[{"l":["r"]},{"l":[]}],"t":true,"f":false,"z":0})");
  const auto parsed = handlebars::Template::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  const auto rendered = parsed->render(*kData, kMost);
  if (rendered && rendered->size() > kMost) std::abort();
  const auto with_gaps = parsed->render_with_gaps(*kData, kMost);
  if (with_gaps.text.size() > kMost || (rendered && *rendered != with_gaps.text)) std::abort();
  return 0;
}
