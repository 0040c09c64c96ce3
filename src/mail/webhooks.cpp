#include "mail/webhooks.h"

#include "base/json.h"
#include "mail/summary.h"

namespace tabella::mail {

using webhook::Rendered;

namespace {

// A hook is told of a message before it is kept: it may be on its way, or may never have come.
Rendered render_missing(const Mail& mail, const std::string& id) {
  constexpr std::chrono::minutes kSlack{1};
  const auto waited = std::chrono::nanoseconds(mail.now() - created_of(id).value_or(0));
  if (waited < mail.options().settle + kSlack) return webhook::NotThereYet{};
  return webhook::NotForThisHook{};
}

Rendered render(const Message& message) {
  webhook::Body body;
  {
    JsonObjectWriter object(body.json);
    object.string("type", "message.received");
    object.string("timestamp", time_text(message.created));
    append_summary_json(object.key("data"), message);
  }
  return body;
}

}  // namespace

store::Async<Rendered> render_for_webhook(Mail& mail, const webhook::Hook& hook, std::string id) {
  TABELLA_CO_ASSIGN(auto message, co_await mail.load(id));
  if (!message) co_return render_missing(mail, id);
  if (!hook.query.empty()) {
    const auto filter = parse_query(hook.query, mail.clock().now());
    TABELLA_CO_ASSIGN(auto document, co_await mail.document(*message));
    if (!filter || !matches(*filter, *document, labels_of(*message))) co_return webhook::NotForThisHook{};
  }
  co_return render(*message);
}

}  // namespace tabella::mail
