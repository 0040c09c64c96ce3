// POST /outbox/emails.
#include <fmt/format.h>

#include "base/checksum.h"
#include "base/ids.h"
#include "base/json.h"
#include "outbox/api.h"
#include "outbox/rendering.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using store::Async;

namespace {

constexpr size_t kMostAtOnce = 1000;

bool is_senders_fault(const store::Error& error) { return error.code == store::ErrorCode::validation; }

}  // namespace

void Api::add_sending(Routes& routes, size_t max_body) {
  routes.add(
      {.method = "POST",
       .path = "/outbox/emails",
       .scope = "outbox:send",
       .summary = "Takes emails; 201: all, 200: some, 422: none. The header Idempotency-Key makes a repeated "
                  "request have the same answer",
       .body = R"({"data": [{"from": "shop@example.com", "to": ["ann@example.com"], "subject": "Order 17",)"
               R"( "body_text": "Thank you!"}]})",
       .max_body = max_body},
      &Api::send);
}

awaitable<void> Api::send(Call& call) {
  if (!call.count_memory(2 * call.request.body.size())) co_return;
  auto body = call.json(R"({"data": [{"from": "…", "to": ["…"], "subject": "…", "body_text": "…"}]})");
  if (!body) co_return;
  const auto data = body->any("data");
  body->no_others();
  if (call.answered()) co_return;
  if (!data || data->kind() != JsonValue::Kind::array)
    co_return call.refuse(422, "\"data\" is to be a list of emails");
  const auto key = call.request.header("idempotency-key");
  // Emails without an id get one from the key: what was taken by a request that did not come to its end is
  // found again.
  const auto id_for = [&](size_t index) {
    return key.empty() ? make_uuid() : uuid_from(fmt::format("{}\n{}\n{}", call.caller.name, key, index));
  };
  const auto work = [&](bool again) -> Async<std::string> {
    std::string results;
    size_t accepted = 0;
    size_t rejected = 0;
    {
      JsonArrayWriter list(results);
      for (JsonElements each(*data); each.next();) {
        if (accepted + rejected == kMostAtOnce)
          co_return store::refuse(fmt::format("at most {} emails at once", kMostAtOnce));
        TABELLA_CO_ASSIGN(auto sent, co_await send_one(each.value(), id_for(accepted + rejected)));
        if (again && sent.duplicate) sent = {.id = sent.id};
        JsonObjectWriter one(list.element());
        if (!sent.id.empty()) one.string("id", sent.id);
        one.string("status", sent.duplicate ? "DUPLICATE" : sent.error.empty() ? "ACCEPTED" : "REJECTED");
        if (!sent.error.empty()) one.string("error", sent.error);
        ++(sent.error.empty() ? accepted : rejected);
      }
    }
    co_return fmt::format(R"({{"summary":{{"total":{},"accepted":{},"rejected":{}}},"results":{}}})",
                          accepted + rejected, accepted, rejected, results);
  };
  std::string text;
  if (key.empty()) {
    auto answer = co_await work(false);
    if (!answer && is_senders_fault(answer.error())) co_return call.refuse(422, answer.error().message);
    if (!answer) co_return house::refuse(call, answer.error());
    text = std::move(*answer);
  } else {
    auto answer = co_await parts_.outcomes.once(
        {.scope = "outbox " + call.caller.name,
         .key = std::string(key),
         .fingerprint = to_hex(sha256(call.request.body)),
         .deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30}},
        work);
    if (!answer && answer.error().code == store::ErrorCode::idempotent_parameter_mismatch)
      co_return call.refuse(422, "this Idempotency-Key was used for another request");
    if (!answer && is_senders_fault(answer.error())) co_return call.refuse(422, answer.error().message);
    if (!answer) co_return house::refuse(call, answer.error());
    text = std::move(answer->text);
    if (answer->repeated) call.response.add_header("Idempotency-Replayed", "true");
  }
  const bool none = text.find(R"("accepted":0,)") != std::string::npos;
  const bool all = text.find(R"("rejected":0})") != std::string::npos;
  call.answer_json(none ? 422 : all ? 201 : 200) = std::move(text);
}

Async<Api::Sent> Api::send_one(JsonValue value, std::string otherwise_id) {
  Sent sent;
  if (value.is_object()) sent.id = value.text("id");
  auto payload = parse_payload(value);
  if (!payload) {
    sent.error = payload.error().message;
    co_return sent;
  }
  if (payload->id.empty()) payload->id = std::move(otherwise_id);
  sent.id = payload->id;
  if (!payload->callback.empty())
    if (const auto url = parts_.outbound.check(payload->callback); !url) {
      sent.error = "\"callback_url\": " + url.error().message;
      co_return sent;
    }
  auto accepted = co_await submit(std::move(*payload), value);
  if (!accepted && !is_senders_fault(accepted.error())) co_return store::error_of(accepted);
  if (!accepted) {
    sent.error = accepted.error().message;
    co_return sent;
  }
  // Whoever sends it twice is told so; the first stays as it is.
  if (accepted->duplicate) {
    sent.duplicate = true;
    sent.error = fmt::format("there is an email with the id {} already", sent.id);
  }
  co_return sent;
}

// Of one that was taken before, it stays as it is.
Async<void> Api::take(std::string json) {
  JsonDocument document;
  const auto value = document.parse(json);
  if (!value) co_return store::refuse("an email is a JSON object");
  TABELLA_CO_ASSIGN(const auto sent, co_await send_one(*value, make_uuid()));
  if (!sent.error.empty() && !sent.duplicate) co_return store::refuse(sent.error);
  co_return store::Result<>{};
}

// What can be composed at once is; what needs something fetched, and all where there is a folder, is composed
// by intake.
Async<Accepted> Api::submit(Payload payload, JsonValue value) {
  for (const auto& elsewhere : payload.elsewhere)
    if (!elsewhere.uri.empty())
      if (const auto url = parts_.outbound.check(elsewhere.uri); !url)
        co_return store::refuse(
            fmt::format("attachment '{}': {}", elsewhere.attachment.name, url.error().message));
  Submission submission{
      .id = payload.id,
      .door = "http",
      .from = payload.envelope_from.empty() ? payload.draft.from.address : payload.envelope_from,
      .recipients = payload.recipients,
      .subject = payload.draft.subject,
      .labels = payload.labels,
      .priority = payload.priority,
      .send_at = payload.send_at,
      .callback = payload.callback};
  TABELLA_CO_TRY(parts_.outbox.check(submission));
  if (parts_.folder || !payload.elsewhere.empty()) {
    std::string json;
    append_json(json, value);
    TABELLA_CO_TRY(co_await keep_payload(submission, std::move(json)));
    co_return co_await parts_.outbox.accept(std::move(submission));
  }
  TABELLA_CO_TRY(co_await render(parts_.outbox.templates(), payload, parts_.long_work));
  auto composed = co_await parts_.composer.compose(payload.id, std::move(payload.draft));
  if (!composed) co_return store::refuse(composed.error().message);
  if (composed->content.size() > parts_.max_size)
    co_return store::refuse(fmt::format("an email has at most {} bytes", parts_.max_size));
  submission.content = std::move(composed->content);
  submission.subject = std::move(composed->subject);
  submission.message_id = std::move(composed->message_id);
  co_return co_await parts_.outbox.accept(std::move(submission));
}

// As a file where there is a folder, so that other programs can take it in; else in the store.
Async<void> Api::keep_payload(Submission& submission, std::string json) {
  if (!parts_.folder) {
    submission.payload = std::move(json);
    co_return store::Result<>{};
  }
  const auto name = submission.id + ".json";
  const auto written = co_await parts_.long_work.run([&] { return parts_.folder->write_new(name, json); });
  if (!written && written.error().kind == FolderError::Kind::exists) {
    TABELLA_CO_ASSIGN(const auto there, co_await parts_.outbox.backend().find(submission.id));
    const auto old = co_await parts_.long_work.run([&] { return parts_.folder->read(name, json.size()); });
    // Left by a request that was never acknowledged; of another email it is not touched.
    if (!there && (!old || *old != json))
      co_return store::refuse(fmt::format("there is a file for the id {} already", submission.id));
  } else if (!written) {
    co_return store::fail(store::ErrorCode::unavailable, written.error().message);
  }
  submission.payload_file_path = parts_.folder->absolute(name);
  co_return store::Result<>{};
}

}  // namespace tabella::outbox
