#include <cstdint>
#include <cstdlib>

#include "net/http.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  RequestHead head;
  if (parse_head(text, head) == HeadResult::complete && head.size > text.size()) std::abort();
  ResponseHead response;
  if (parse_head(text, response) == HeadResult::complete && response.size > text.size()) std::abort();
  // A body means the same in one piece and byte by byte.
  ChunkedBody whole(size);
  auto rest = text;
  const auto state = whole.feed(rest);
  ChunkedBody split(size);
  auto split_state = ChunkedBody::State::incomplete;
  size_t begin = 0;
  for (size_t end = 1; end <= size && split_state == ChunkedBody::State::incomplete; ++end) {
    auto piece = text.substr(begin, end - begin);
    split_state = split.feed(piece);
    begin = end - piece.size();
  }
  if (size > 0 && (state == ChunkedBody::State::complete) != (split_state == ChunkedBody::State::complete))
    std::abort();
  if (state == ChunkedBody::State::complete && whole.body() != split.body()) std::abort();
  return 0;
}
