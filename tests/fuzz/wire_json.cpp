// Every operation's reader: the first byte chooses the operation, the rest is the body. What is read as an
// item must survive being written and read again.
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "base/log.h"
#include "item/attribute_json.h"
#include "support/empty_store.h"
#include "wire/door.h"
#include "wire/operations.h"

namespace {

using namespace tabella;

std::string target_of(uint8_t choice) {
  const auto operations = wire::all_operations();
  const auto& operation = operations[choice % operations.size()];
  return fmt::format("{}_20120810.{}", operation.service, operation.name);
}

void check_item_round_trip(std::string_view body) {
  static JsonDocument document;
  const auto json = document.parse(body);
  if (!json) return;
  const auto item = item::read_item(*json);
  if (!item) return;
  std::string text;
  item::append_item_json(text, *item);
  JsonDocument again;
  const auto parsed = again.parse(text);
  if (!parsed) std::abort();
  const auto reread = item::read_item(*parsed);
  if (!reread || reread->bytes() != item->bytes()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static test::EmptyStore store;
  static const SystemClock clock;
  static wire::Door door(store, clock, {.access_keys = {}});
  log::set_level("off");
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto target = target_of(data[0]);
  const net::HttpRequest request{
      .method = "POST",
      .target = "/",
      .headers = {{"Host", "x"},
                  {"Content-Type", "application/x-amz-json-1.0"},
                  {"X-Amz-Date", "20260101T000000Z"},
                  {"Authorization", "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, Signature=0"},
                  {"X-Amz-Target", target}},
      .body = body};
  net::HttpResponse response;
  boost::asio::io_context context;
  boost::asio::co_spawn(context, door.handle(request, response), boost::asio::detached);
  context.run();
  if (response.status == 200 || response.status == 400) {
    // Every answer is JSON, or nothing.
    JsonDocument answer;
    if (!response.body.empty() && !answer.parse(response.body)) std::abort();
  }
  check_item_round_trip(body);
  return 0;
}
