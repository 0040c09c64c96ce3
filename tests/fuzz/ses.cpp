#include <cstdint>
#include <cstdlib>

#include "outbox/rendering.h"
#include "outbox/ses_requests.h"

namespace {

using namespace tabella;
using namespace tabella::outbox;

void check_destination(const SesDestination& destination) {
  if (destination.size() > kSesMostRecipients) std::abort();
  for (const auto* some : {&destination.to, &destination.cc, &destination.bcc})
    for (const auto& one : *some)
      if (!one.address.contains('@') || one.address.contains('\n')) std::abort();
}

// What two objects are merged into is an object again, and merged with nothing it stays what it is.
void check_data(const std::string& data) {
  const auto merged = merge_template_data(data, "{}");
  if (!merged || merge_template_data(*merged, "{}") != *merged) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  JsonDocument document;
  const auto body = document.parse({reinterpret_cast<const char*>(data), size});
  if (!body) return 0;
  if (const auto email = parse_send_email(*body)) {
    check_destination(email->destination);
    if (email->with_template) check_data(email->with_template->data);
  }
  if (const auto bulk = parse_send_bulk_email(*body)) {
    if (!bulk->email.with_template || bulk->entries.size() > kSesMostEntries) std::abort();
    for (const auto& entry : bulk->entries)
      if (entry) check_destination(entry->destination), check_data(entry->data);
  }
  if (const auto made = parse_create_email_template(*body); made && check_template(*made)) {
    mime::Draft draft;
    (void)render_into(draft, *made, R"({"name": "Ann", "list": [1, {"a": "b"}]})");
  }
  (void)parse_test_render(*body);
  (void)parse_put_suppressed_destination(*body);
  (void)parse_create_configuration_set(*body);
  return 0;
}
