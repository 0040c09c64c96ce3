// The end of a link: none that was not signed is good.
#include <cstdint>
#include <cstdlib>

#include "manhunt/links.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella::manhunt;
  static const Search search{.id = "s0123456789abcdefghij", .nonce = "nobody knows"};
  const auto token = parse_link_token({reinterpret_cast<const char*>(data), size});
  if (token && is_genuine(*token, search)) std::abort();
  return 0;
}
