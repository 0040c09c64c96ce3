#include "manhunt/verification.h"

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/ids.h"
#include "base/random.h"
#include "base/text.h"
#include "manhunt/rates.h"
#include "store/conditional.h"

namespace tabella::manhunt {

using store::Async;

namespace {

constexpr std::chrono::minutes kCodeGoodFor{15};
constexpr std::chrono::seconds kBetweenCodes{30};
constexpr int64_t kMostGuesses = 5;
constexpr std::chrono::minutes kWindow{15};
constexpr int64_t kMostInWindow = 5;
constexpr int64_t kMostOfAllDomains = 10;

std::string make_code() {
  uint64_t number = 0;
  for (const char byte : random_bytes(8)) number = number << 8 | static_cast<uint8_t>(byte);
  return fmt::format("{:06}", number % 1'000'000);
}

std::string code_hash(const Method& method, std::string_view code) {
  return to_hex(sha256(fmt::format("{}|{}|{}", method.id, method.destination, code)));
}

Message alone(const Domain& domain, const Contact& contact, const Method& method, const std::string& text) {
  const auto said = domain.title.empty() ? text : fmt::format("{}: {}", domain.title, text);
  return {.id = make_uuid(),
          .domain = domain.name,
          .kind = method.kind,
          .destination = method.destination,
          .contact_name = contact.name,
          .language = language_of_words(language_of(contact, Search{}, domain)),
          .subject = said,
          .text = said};
}

const Phrases& words_for(const Domain& domain, const Contact& contact) {
  return phrases(language_of(contact, Search{}, domain));
}

}  // namespace

// Who has keys of many domains is bounded as well.
Async<bool> Verification::may_send(const Domain& domain, const Method& method) {
  const auto to = lower(method.destination);
  for (const auto& [counted, most] : {std::pair(fmt::format("to#{}#{}", domain.name, to), kMostInWindow),
                                      std::pair(fmt::format("to##{}", to), kMostOfAllDomains)}) {
    TABELLA_CO_ASSIGN(
        const auto number,
        co_await count_once(store_, table_, RateWindow::at(counted, kWindow, clock_.now()), most));
    if (!number) co_return false;
  }
  co_return true;
}

Async<std::optional<Sent>> Verification::begin(const Domain& domain, const Contact& contact,
                                               const Method& method) {
  TABELLA_CO_ASSIGN(const bool may, co_await may_send(domain, method));
  if (!may) co_return std::nullopt;
  const auto now = clock_.now();
  const auto code = make_code();
  store::Update update(table_, method_key(method.contact, method.id));
  update.set("codeHash", code_hash(method, code))
      .set("codeUntil", epoch_milliseconds(now + kCodeGoodFor))
      .set("codeSent", epoch_milliseconds(now))
      .set("guesses", 0)
      .when(store::exists(kPartition))
      .when(store::absent("codeSent") || store::less("codeSent", epoch_milliseconds(now - kBetweenCodes)));
  TABELLA_CO_ASSIGN(const bool made, store::was_made(co_await store_.update_item(std::move(update))));
  if (!made) co_return std::nullopt;
  // Spoken, it is said digit by digit.
  std::string spoken;
  for (const char digit : code) spoken.append(spoken.empty() ? "" : " ").push_back(digit);
  const auto& shown = method.kind == ChannelKind::phone ? spoken : code;
  const auto text = fmt::format("{} {}.", words_for(domain, contact).verification, shown);
  co_return (co_await sender_.send_alone(alone(domain, contact, method, text))).second;
}

Async<Confirmation> Verification::confirm(const Method& method, std::string code) {
  store::Update guess(table_, method_key(method.contact, method.id));
  guess.add("guesses", 1)
      .when(store::exists("codeHash") && store::less("guesses", kMostGuesses) &&
            store::greater("codeUntil", epoch_milliseconds(clock_.now())))
      .returning(store::ReturnValues::all_new)
      .return_old_on_failure();
  const auto guessed = co_await store_.update_item(std::move(guess));
  if (!guessed) {
    if (!store::failed_its_condition(guessed.error())) co_return store::error_of(guessed);
    TABELLA_CO_ASSIGN(const auto row, co_await store::item_behind(store_, guessed.error(), table_,
                                                                  method_key(method.contact, method.id)));
    const bool too_many = row && store::number_of(*row, "guesses") >= kMostGuesses;
    co_return too_many ? Confirmation::too_many : Confirmation::none;
  }
  const auto hash = store::text_of(*guessed->attributes, "codeHash");
  if (!equal_in_constant_time(hash, code_hash(method, code))) co_return Confirmation::wrong;
  store::Update update(table_, method_key(method.contact, method.id));
  update.set("verified", true).remove("codeHash").remove("codeUntil").remove("guesses");
  update.when(store::equals("codeHash", hash));
  TABELLA_CO_ASSIGN(const bool made, store::was_made(co_await store_.update_item(std::move(update))));
  co_return made ? Confirmation::confirmed : Confirmation::none;
}

Async<std::optional<std::pair<std::string, Sent>>> Verification::test(const Domain& domain,
                                                                      const Contact& contact,
                                                                      const Method& method) {
  TABELLA_CO_ASSIGN(const bool may, co_await may_send(domain, method));
  if (!may) co_return std::nullopt;
  co_return co_await sender_.send_alone(
      alone(domain, contact, method, std::string(words_for(domain, contact).test)));
}

}  // namespace tabella::manhunt
