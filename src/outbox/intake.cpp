#include "outbox/intake.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/json.h"
#include "mime/field.h"
#include "outbox/rendering.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using Kind = IntakeResult::Kind;

namespace {

IntakeResult invalid_payload(std::string reason) {
  return {.kind = Kind::invalid, .reason = std::move(reason)};
}
IntakeResult try_later(std::string reason) { return {.kind = Kind::later, .reason = std::move(reason)}; }

IntakeResult failed_to_read(const FolderError& error) {
  return error.kind == FolderError::Kind::trouble ? try_later(error.message) : invalid_payload(error.message);
}

// What the payload says of the message beside its content.
void fill_in(const Payload& payload, const Composed& composed, Message& message) {
  message.from = payload.envelope_from.empty() ? payload.draft.from.address : payload.envelope_from;
  if (message.recipients.empty())
    for (const auto& address : payload.recipients) message.add_recipient(address);
  message.subject = composed.subject;
  message.message_id = composed.message_id;
  message.composed = true;
  message.size = composed.content.size();
  if (message.door != "table") return;
  message.labels = payload.labels;
  message.priority = payload.priority;
  message.callback = payload.callback;
  message.send_at = std::max(message.send_at, payload.send_at.value_or(message.send_at));
}

}  // namespace

awaitable<IntakeResult> Intake::take(Email& email, Message& message) {
  std::string json;
  if (email.payload_file_path.empty()) {
    auto loaded = co_await parts_.outbox.load(message, kPayload);
    if (!loaded) co_return try_later(loaded.error().message);
    json = std::move(*loaded);
  } else {
    if (!parts_.folder)
      co_return IntakeResult{.kind = Kind::foreign,
                             .reason = "its payload is a file, and there is no --outbox-folder"};
    auto read = co_await parts_.long_work.run(
        [&] { return parts_.folder->read(email.payload_file_path, parts_.max_size); });
    if (!read) co_return failed_to_read(read.error());
    json = std::move(*read);
  }
  JsonDocument document;
  const auto value = document.parse(json);
  if (!value) co_return invalid_payload("the payload is no JSON");
  auto payload = parse_payload(*value);
  if (!payload) co_return invalid_payload(payload.error().message);
  if (!payload->callback.empty())
    if (const auto url = parts_.outbound.check(payload->callback); !url)
      co_return invalid_payload("\"callback_url\": " + url.error().message);
  if (auto rendered = co_await render(parts_.outbox.templates(), *payload, parts_.long_work); !rendered) {
    if (rendered.error().code == store::ErrorCode::validation)
      co_return invalid_payload(rendered.error().message);
    co_return try_later(rendered.error().message);
  }
  if (auto fetched = co_await fetch(*payload); fetched.kind != Kind::ready) co_return fetched;
  auto composed = co_await parts_.composer.compose(message.id, payload->draft);
  if (!composed) co_return invalid_payload(composed.error().message);
  if (composed->content.size() > parts_.max_size)
    co_return invalid_payload(fmt::format("the message is larger than {} bytes", parts_.max_size));
  fill_in(*payload, *composed, message);
  message.body = make_body();
  if (parts_.folder && !email.payload_file_path.empty()) {
    const auto name = fmt::format("{}.eml", message.id);
    const auto written =
        co_await parts_.long_work.run([&] { return parts_.folder->write_new(name, composed->content); });
    // There already: by an intake that did not come to its end. A message is composed of what does not
    // change.
    if (!written && written.error().kind != FolderError::Kind::exists)
      co_return try_later(written.error().message);
    email.eml_file_path = parts_.folder->absolute(name);
  }
  if (const auto put = co_await parts_.outbox.put_pieces(message, kContent, composed->content); !put)
    co_return try_later(put.error().message);
  co_return IntakeResult{};
}

awaitable<IntakeResult> Intake::read_eml(const Email& email, Message& message) {
  if (!parts_.folder || email.eml_file_path.empty())
    co_return IntakeResult{.kind = Kind::foreign,
                           .reason = "its content is not here: --outbox-folder says where the files are"};
  auto read = co_await parts_.long_work.run(
      [&] { return parts_.folder->read(email.eml_file_path, parts_.max_size); });
  if (!read) co_return failed_to_read(read.error());
  // Of another program's email the message itself says who it is for.
  if (message.recipients.empty())
    for (const auto& address : mime::recipients_of(*read)) message.add_recipient(address.address);
  if (message.recipients.empty()) co_return invalid_payload("the message has no recipients");
  auto composed = co_await parts_.composer.complete(message.id, std::move(*read));
  if (!composed) co_return invalid_payload(composed.error().message);
  if (message.door == "table") {
    message.from = composed->from;
    message.subject = composed->subject;
    message.message_id = composed->message_id;
  }
  message.size = composed->content.size();
  co_return IntakeResult{.kind = Kind::ready, .content = std::move(composed->content)};
}

awaitable<IntakeResult> Intake::fetch(Payload& payload) {
  size_t room = parts_.max_size;
  for (auto& elsewhere : payload.elsewhere) {
    auto& attachment = elsewhere.attachment;
    auto got = elsewhere.uri.empty() ? co_await read_path(elsewhere, room, attachment)
                                     : co_await fetch_uri(elsewhere, room, attachment);
    if (got.kind != Kind::ready) co_return got;
    room -= std::min(room, attachment.bytes.size());
    payload.draft.attachments.push_back(std::move(attachment));
  }
  payload.elsewhere.clear();
  co_return IntakeResult{};
}

awaitable<IntakeResult> Intake::fetch_uri(const PayloadAttachment& elsewhere, size_t most,
                                          mime::Attachment& into) {
  auto reply = co_await parts_.outbound.send(
      {.url = elsewhere.uri, .timeout = std::chrono::seconds{30}, .max_body = most, .redirects = 3});
  if (!reply)
    co_return reply.error().refused
        ? invalid_payload(fmt::format("attachment '{}': {}", into.name, reply.error().message))
        : try_later(fmt::format("attachment '{}': {}", into.name, reply.error().message));
  if (reply->status / 100 != 2) {
    auto reason = fmt::format("attachment '{}': its server answered {}", into.name, reply->status);
    const bool may_pass = reply->status >= 500 || reply->status == 429 || reply->status == 408;
    co_return may_pass ? try_later(std::move(reason)) : invalid_payload(std::move(reason));
  }
  into.bytes = std::move(reply->body);
  // What servers say may be anything; what is no type of one part is left out.
  const auto type = reply->header("content-type");
  if (into.content_type.empty() && type.find('/') != std::string_view::npos &&
      !type.starts_with("multipart/") && mime::check_text("Content-Type", type))
    into.content_type = type;
  co_return IntakeResult{};
}

awaitable<IntakeResult> Intake::read_path(const PayloadAttachment& elsewhere, size_t most,
                                          mime::Attachment& into) {
  if (!parts_.folder)
    co_return invalid_payload(
        fmt::format("attachment '{}' is a path, and there is no --outbox-folder", into.name));
  // The files of other emails are in the same folder, and not for whoever may only send.
  const std::filesystem::path path(elsewhere.path);
  if (path.extension() == ".json" || path.extension() == ".eml") {
    const auto stem = path.stem().string();
    store::Result<std::optional<Email>> email;
    if (is_email_id(stem)) email = co_await parts_.outbox.backend().find(stem);
    if (!email) co_return try_later(email.error().message);
    if (*email) co_return invalid_payload(fmt::format("'{}' is the file of an email", elsewhere.path));
  }
  auto read = co_await parts_.long_work.run([&] { return parts_.folder->read(elsewhere.path, most); });
  if (!read) co_return failed_to_read(read.error());
  into.bytes = std::move(*read);
  co_return IntakeResult{};
}

}  // namespace tabella::outbox
