// What an endpoint may answer to a remote Store: the first byte chooses what is read, the rest is the body. A
// result that was understood can be sent on.
#include <cstdint>
#include <cstdlib>

#include "remote/request_json.h"
#include "remote/result_json.h"

namespace {

using namespace tabella;

template <class Result>
bool reads(JsonValue json) {
  Result result;
  return remote::read(json, result);
}

void read_batch(JsonValue json) {
  store::BatchWriteItemResult written;
  if (remote::read(json, written))
    static_cast<void>(remote::to_json(store::BatchWriteItemRequest{.tables = written.unprocessed}));
  store::BatchGetItemResult found;
  if (remote::read(json, found))
    static_cast<void>(remote::to_json(store::BatchGetItemRequest{.tables = found.unprocessed}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static JsonDocument document;
  const auto json = document.parse({reinterpret_cast<const char*>(data + 1), size - 1});
  if (!json) return 0;
  switch (data[0] % 17) {
    case 0: reads<store::WriteResult>(*json); break;
    case 1: reads<store::GetItemResult>(*json); break;
    case 2: reads<store::Page>(*json); break;
    case 3: read_batch(*json); break;
    case 4: reads<store::TransactWriteItemsResult>(*json); break;
    case 5: reads<store::TransactGetItemsResult>(*json); break;
    case 6: reads<store::ExecuteStatementResult>(*json); break;
    case 7: reads<store::BatchExecuteStatementResult>(*json); break;
    case 8: reads<store::TableDescription>(*json); break;
    case 9: reads<store::ListTablesResult>(*json); break;
    case 10: reads<store::TimeToLiveDescription>(*json); break;
    case 11: reads<remote::TagPage>(*json); break;
    case 12: reads<store::ListStreamsResult>(*json); break;
    case 13: reads<store::StreamDescription>(*json); break;
    case 14: reads<store::GetRecordsResult>(*json); break;
    case 15: reads<std::string>(*json); break;
    default: reads<remote::ErrorBody>(*json); break;
  }
  return 0;
}
