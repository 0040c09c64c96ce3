// A delivery report: whatever it is, what is read from it is UTF-8, and names somebody.
#include "mime/dsn.h"

#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  for (const auto& recipient : mime::parse_delivery_report({reinterpret_cast<const char*>(data), size})) {
    if (recipient.original_recipient.empty() && recipient.final_recipient.empty()) std::abort();
    if (!is_valid_utf8(recipient.diagnostic) || !is_valid_utf8(recipient.final_recipient)) std::abort();
  }
  return 0;
}
