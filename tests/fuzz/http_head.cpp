#include <cstdint>
#include <cstdlib>

#include "net/http.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  RequestHead head;
  if (parse_head(text, head) == HeadResult::complete && head.size > text.size()) std::abort();
  const auto chunked = measure_chunked(text);
  if (chunked.state == Chunked::State::complete) {
    if (chunked.consumed > size) std::abort();
    if (decode_chunked(text).size() != chunked.size) std::abort();
  }
  return 0;
}
