#include "outbox/service.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ids.h"
#include "outbox/expiry.h"
#include "outbox/statements.h"
#include "smtp/address.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::outbox {

using store::Async;
using store::ErrorCode;

namespace {

constexpr size_t kSmall = 300 * 1024;  // what goes into one transaction with the rest

bool is_duplicate(const store::Error& error) {
  return error.code == ErrorCode::duplicate_item ||
         std::ranges::any_of(error.reasons,
                             [](const auto& reason) { return reason.code == "DuplicateItem"; });
}

bool can_be_cancelled(State state) { return state == State::accepted || state == State::ready; }

bool can_be_requeued(State state) {
  return state == State::failed || state == State::invalid || state == State::calling_failed_callback ||
         state == State::failed_acknowledged;
}

// States that somebody has to do something about.
bool needs_work(State state, bool has_callback) {
  switch (state) {
    case State::accepted:
    case State::intaking:
    case State::ready:
    case State::processing: return true;
    case State::sent:
    case State::failed: return has_callback;
    case State::invalid:
    case State::calling_sent_callback:
    case State::calling_failed_callback:
    case State::sent_acknowledged:
    case State::failed_acknowledged: return false;
  }
  return false;
}

}  // namespace

Outbox::Outbox(store::Store& store, const Clock& clock, Backend& backend, ServiceOptions options)
    : store_(store),
      clock_(clock),
      backend_(backend),
      options_(std::move(options)),
      suppressions_(store, clock, options_.messages),
      templates_(store, clock, options_.messages),
      pauses_(store, clock, options_.messages) {}

std::optional<int64_t> Outbox::expiry_of(TimePoint send_at) const {
  if (!options_.time_to_live) return std::nullopt;
  const auto from = std::max(send_at, clock_.now());
  return epoch_milliseconds(from + options_.give_up + *options_.time_to_live) / 1000;
}

void Outbox::make_due(Message& message, int64_t due) const {
  message.shard = work_shard(message);
  message.due = due;
  message.owner.clear();
}

store::Result<Message> Outbox::to_new_message(const Submission& submission) const {
  const auto now = clock_.now();
  const auto send_at = std::max(submission.send_at.value_or(now), now);
  Message message{.id = submission.id.empty() ? make_uuid() : submission.id,
                  .created = now,
                  .door = submission.door,
                  .from = submission.from,
                  .recipients = {},
                  .subject = submission.subject,
                  .message_id = submission.message_id,
                  .labels = submission.labels,
                  .priority = submission.priority,
                  .send_at = send_at,
                  .give_up_at = send_at + options_.give_up,
                  .callback = submission.callback,
                  .composed = !submission.content.empty(),
                  .body = make_body(),
                  .size = submission.content.size(),
                  .expires = expiry_of(send_at)};
  if (!is_email_id(message.id))
    return store::refuse(
        "an id has at most 36 letters, digits, '-', '_' and '.', and does not begin with a dot");
  for (const auto& address : submission.recipients) {
    if (!smtp::is_address(address) || domain_of(address).empty())
      return store::refuse(fmt::format("'{}' is no address", address));
    message.add_recipient(address);
    if (message.recipients.size() > options_.max_recipients)
      return store::refuse(fmt::format("an email has at most {} recipients", options_.max_recipients));
  }
  if (message.recipients.empty() && message.composed) return store::refuse("an email needs a recipient");
  if (!message.from.empty() && !smtp::is_address(message.from))
    return store::refuse(fmt::format("'{}' is no address to send from", message.from));
  return message;
}

store::Result<void> Outbox::check(const Submission& submission) const {
  if (const auto message = to_new_message(submission); !message) return std::unexpected(message.error());
  return {};
}

Async<void> Outbox::put_pieces(const Message& message, std::string_view kind, std::string_view bytes) {
  std::vector<store::BatchWrite> writes;
  for (auto& piece : to_pieces(message, kind, bytes)) writes.push_back({.item = std::move(piece)});
  return store::write_all(store_, options_.messages, std::move(writes));
}

Async<bool> Outbox::put(const Email& email, const Message& message, const Submission& submission) {
  const auto kind = message.composed ? kContent : kPayload;
  const auto& bytes = message.composed ? submission.content : submission.payload;
  Beside beside{.before = {insert_into(options_.messages, to_item(message))}};
  if (bytes.size() > kSmall) {
    TABELLA_CO_TRY(co_await put_pieces(message, kind, bytes));
  } else if (!bytes.empty()) {
    beside.before.push_back(insert_into(options_.messages, to_pieces(message, kind, bytes).front()));
  }
  auto created = co_await backend_.create(email, std::move(beside));
  if (created || !is_duplicate(created.error())) co_return created;
  // Our rows are there. If the email is too, it is a duplicate; else somebody was killed in between, and it
  // was never acknowledged.
  TABELLA_CO_ASSIGN(const auto there, co_await backend_.find(email.id));
  if (there) co_return false;
  TABELLA_CO_TRY(co_await put_pieces(message, kind, bytes));
  TABELLA_CO_TRY(co_await store_.put_item(store::Put(options_.messages, to_item(message))));
  co_return co_await backend_.create(email, {});
}

// A message without `expires` is given one when it is looked at next: its own row is the first to lose it and
// the last to get it, wherever this is interrupted.
Async<void> Outbox::keep_until(Message& message, std::optional<int64_t> second) {
  TABELLA_CO_ASSIGN(
      auto keys,
      co_await store::query_all(
          store_,
          store::Query(options_.messages).partition("id", message.id).only({"id", "part"}).consistent()));
  std::erase_if(keys, [](const auto& key) { return store::text_of(key, "part") == "message"; });
  const auto set = [&](std::vector<item::Item> rows) {
    return set_expiry(store_, options_.messages, std::move(rows), "expires", second);
  };
  if (!second) TABELLA_CO_TRY(co_await set({message_key(message.id)}));
  TABELLA_CO_TRY(co_await set(std::move(keys)));
  TABELLA_CO_TRY(co_await backend_.keep_until(message.id, second));
  if (second) TABELLA_CO_TRY(co_await set({message_key(message.id)}));
  message.expires = second;
  co_return store::Result<>{};
}

Async<Accepted> Outbox::accept(Submission submission) {
  auto made = to_new_message(submission);
  if (!made) co_return store::error_of(made);
  auto& message = *made;
  const bool now_due = message.send_at <= clock_.now();
  const bool held = message.composed && now_due && hands_.hold && hands_.hold();
  make_due(message, epoch_milliseconds(message.send_at));
  if (held) {
    message.owner = options_.worker;
    message.due = now() + options_.lease.count();
  }
  const Email email{.id = message.id,
                    .status = message.composed ? State::ready : State::accepted,
                    .eml_file_path = submission.eml_file_path,
                    .payload_file_path = submission.payload_file_path,
                    .ttl = message.expires};
  TABELLA_CO_ASSIGN(const auto is_new, co_await put(email, message, submission));
  Accepted accepted{.id = message.id, .duplicate = !is_new};
  if (!is_new) co_return accepted;
  ++accepted_;
  if (held)
    hands_.take({.email = email,
                 .message = std::move(message),
                 .content = std::make_shared<const std::string>(std::move(submission.content))});
  else
    look();
  co_return accepted;
}

Async<std::optional<Message>> Outbox::find_message(const std::string& id) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = options_.messages, .key = message_key(id), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return to_message(*found.item);
}

Async<std::optional<Life>> Outbox::find(std::string id) {
  TABELLA_CO_ASSIGN(auto email, co_await backend_.find(id));
  if (!email) co_return std::nullopt;
  Life life{.email = std::move(*email)};
  TABELLA_CO_ASSIGN(life.message, co_await find_message(id));
  TABELLA_CO_ASSIGN(life.history, co_await backend_.history(id));
  TABELLA_CO_ASSIGN(const auto rows,
                    co_await store::query_all(store_, store::Query(options_.messages)
                                                          .partition("id", id)
                                                          .where(store::begins_with("part", "attempt#"))
                                                          .consistent()));
  for (const auto& row : rows)
    if (auto attempt = to_attempt(row)) life.attempts.push_back(std::move(*attempt));
  co_return life;
}

Async<std::string> Outbox::load(const Message& message, std::string_view kind) {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(store_, store::Query(options_.messages)
                                            .partition("id", message.id)
                                            .where(store::begins_with("part", pieces_prefix(message, kind)))
                                            .consistent()));
  std::string bytes;
  for (const auto& row : rows) bytes += store::binary_of(row, "bytes");
  co_return bytes;
}

Async<std::optional<std::string>> Outbox::content(std::string id) {
  TABELLA_CO_ASSIGN(const auto message, co_await find_message(id));
  if (!message) co_return std::nullopt;
  TABELLA_CO_ASSIGN(auto bytes, co_await load(*message, kContent));
  if (bytes.empty()) co_return std::nullopt;
  co_return std::move(bytes);
}

Async<Stepped> Outbox::cancel(std::string id) {
  TABELLA_CO_ASSIGN(auto email, co_await backend_.find(id));
  if (!email) co_return Stepped::not_found;
  if (!can_be_cancelled(email->status)) co_return Stepped::too_late;
  TABELLA_CO_ASSIGN(auto message, co_await find_message(id));
  Beside beside;
  if (message) {
    for (auto& recipient : message->recipients)
      if (recipient.result == Result::waiting) {
        recipient.result = Result::failed;
        recipient.reply = "cancelled";
      }
    message->shard.clear();
    // One that was parked is given a time to go, too.
    if (wants_callback(*message) || (!message->expires && options_.time_to_live)) make_due(*message, now());
    beside.after.push_back(update_statement(options_.messages, *message));
  }
  TABELLA_CO_ASSIGN(const auto moved,
                    co_await backend_.move(*email, State::failed, "cancelled", std::move(beside)));
  if (moved) look();
  co_return moved ? Stepped::done : Stepped::too_late;
}

Async<Stepped> Outbox::requeue(std::string id) {
  TABELLA_CO_ASSIGN(auto email, co_await backend_.find(id));
  if (!email) co_return Stepped::not_found;
  if (!can_be_requeued(email->status)) co_return Stepped::too_late;
  TABELLA_CO_ASSIGN(auto message, co_await find_message(id));
  Beside beside;
  const bool composed = (message && message->composed) || !email->eml_file_path.empty();
  if (message) {
    for (auto& recipient : message->recipients)
      if (recipient.result != Result::delivered) recipient.result = Result::waiting;
    message->attempting = false;
    message->give_up_at = clock_.now() + options_.give_up;
    make_due(*message, now());
    TABELLA_CO_TRY(co_await keep_until(*message, expiry_of(clock_.now())));
    email->ttl = message->expires;
    beside.after.push_back(update_statement(options_.messages, *message));
  }
  TABELLA_CO_ASSIGN(const auto moved,
                    co_await backend_.move(*email, composed ? State::ready : State::accepted, "requeued",
                                           std::move(beside)));
  if (!moved) co_return Stepped::too_late;
  if (!message) {
    TABELLA_CO_TRY(co_await adopt(*moved));
  }
  look();
  co_return Stepped::done;
}

Async<void> Outbox::note_bounce(std::string id, std::string recipient, std::string diagnostic) {
  // Again where somebody else changes its recipients at the same time.
  for (int tries = 0; tries < 5; ++tries) {
    TABELLA_CO_ASSIGN(auto message, co_await find_message(id));
    if (!message) co_return store::Result<>{};
    const auto before = recipients_json(message->recipients);
    const auto found = std::ranges::find(message->recipients, recipient, &Recipient::address);
    if (found == message->recipients.end() || found->result == Result::waiting) co_return store::Result<>{};
    found->result = Result::failed;
    found->reply = fmt::format("bounced: {}", diagnostic);
    TABELLA_CO_ASSIGN(const auto made, store::was_made(co_await store_.update_item(
                                           store::Update(options_.messages, message_key(id))
                                               .set("recipients", recipients_json(message->recipients))
                                               .when(store::equals("recipients", before)))));
    if (made) co_return store::Result<>{};
  }
  co_return store::fail(ErrorCode::transaction_conflict, "the recipients change all the time");
}

// An email that we were done with, and that another program has brought back.
Async<void> Outbox::adopt_again(const Email& email, Message message) {
  const bool anew = email.status == State::accepted || email.status == State::ready;
  if (anew && !message.any(Result::waiting)) {
    for (auto& recipient : message.recipients)
      if (recipient.result != Result::delivered) recipient.result = Result::waiting;
    message.give_up_at = clock_.now() + options_.give_up;
    TABELLA_CO_TRY(co_await keep_until(message, std::max(email.ttl, expiry_of(clock_.now()))));
  }
  make_due(message, now());
  TABELLA_CO_TRY(store::was_made(
      co_await store_.update_item(store::Update(options_.messages, message_key(message.id))
                                      .set("recipients", recipients_json(message.recipients))
                                      .set("give_up_at", epoch_milliseconds(message.give_up_at))
                                      .set("shard", message.shard)
                                      .set("due", message.due)
                                      .set("owner", message.owner)
                                      .when(store::absent("shard") && store::exists("id")))));
  co_return store::Result<>{};
}

Async<void> Outbox::adopt(const Email& email) {
  TABELLA_CO_ASSIGN(auto found, co_await find_message(email.id));
  if (found && (!found->shard.empty() || !needs_work(email.status, wants_callback(*found))))
    co_return store::Result<>{};
  if (found) {
    TABELLA_CO_TRY(co_await adopt_again(email, *found));
  } else if (needs_work(email.status, options_.has_callback)) {
    Message message{.id = email.id,
                    .created = email.updated_at,
                    .door = "table",
                    .send_at = email.updated_at,
                    .give_up_at = clock_.now() + options_.give_up,
                    .composed = false,
                    .expires = email.ttl ? email.ttl : expiry_of(clock_.now())};
    make_due(message, now());
    TABELLA_CO_TRY(store::was_made(
        co_await store_.put_item(store::Put(options_.messages, to_item(message)).when(store::absent("id")))));
  }
  look();
  co_return store::Result<>{};
}

void Outbox::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_outbox_accepted_total", "Emails that were accepted", static_cast<double>(accepted_));
}

}  // namespace tabella::outbox
