#include "outbox/composer.h"

#include <fmt/format.h>

#include "mime/message.h"
#include "outbox/message.h"

namespace tabella::outbox {

using boost::asio::awaitable;

namespace {

std::multimap<std::string, mime::DkimKey> keys_by_domain(std::vector<mime::DkimKey> keys) {
  std::multimap<std::string, mime::DkimKey> by_domain;
  for (auto& key : keys) {
    const auto domain = key.domain();
    by_domain.emplace(domain, std::move(key));
  }
  return by_domain;
}

}  // namespace

Composer::Composer(std::string hostname, std::vector<mime::DkimKey> keys, const Clock& clock,
                   store::LongWork long_work)
    : hostname_(std::move(hostname)),
      keys_(keys_by_domain(std::move(keys))),
      clock_(clock),
      long_work_(std::move(long_work)) {}

std::string Composer::message_id_of(const std::string& id) const {
  return fmt::format("{}@{}", id, hostname_);
}

awaitable<Checked<Composed>> Composer::compose(std::string id, mime::Draft draft) const {
  draft.message_id = message_id_of(id);
  draft.date = clock_.now();
  const auto work = [&]() -> Checked<Composed> {
    TABELLA_ASSIGN(auto prepared, mime::compose(draft));
    return finish(std::move(prepared));
  };
  co_return co_await long_work_.run(work);
}

awaitable<Checked<Composed>> Composer::complete(std::string id, std::string raw) const {
  const auto work = [&]() -> Checked<Composed> {
    TABELLA_ASSIGN(auto prepared,
                   mime::complete(raw, {.message_id = message_id_of(id), .date = clock_.now()}));
    return finish(std::move(prepared));
  };
  constexpr size_t kQuick = 64 * 1024;
  if (raw.size() <= kQuick && keys_.empty()) co_return work();
  co_return co_await long_work_.run(work);
}

Checked<Composed> Composer::finish(mime::Prepared prepared) const {
  std::string_view rest = prepared.bytes;
  const auto headers = mime::take_headers(rest);
  const auto value_of = [&](std::string_view name) {
    const auto* header = mime::find_header(headers, name);
    return header ? header->value : std::string();
  };
  Composed composed{.message_id = value_of("Message-ID"), .subject = value_of("Subject")};
  // As it stands there: a name may hold a comma once it is decoded.
  if (const auto* header = mime::find_header(headers, "From"))
    if (const auto from = mime::parse_addresses(header->raw); !from.empty())
      composed.from = from.front().address;
  std::string signatures;
  const auto [first, last] = keys_.equal_range(domain_of(composed.from));
  for (auto key = first; key != last; ++key) signatures += key->second.sign(prepared.bytes, clock_.now());
  composed.content = signatures.empty() ? std::move(prepared.bytes) : signatures + prepared.bytes;
  return composed;
}

}  // namespace tabella::outbox
