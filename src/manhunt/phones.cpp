#include "manhunt/phones.h"

#include <utility>

#include "store/conditional.h"

namespace tabella::manhunt {

using store::Async;

namespace {

constexpr size_t kMostPhones = 100;
constexpr int kMostPages = 20;

}  // namespace

Async<std::vector<Attempt>> Phones::ringing(std::string domain) {
  std::vector<Attempt> ringing;
  std::optional<store::Item> from;
  for (int pages = 0; pages < kMostPages && ringing.size() < kMostPhones; ++pages) {
    TABELLA_CO_ASSIGN(from, co_await add_page(ringing, domain, std::move(from)));
    if (!from) break;
  }
  co_return ringing;
}

Async<std::optional<store::Item>> Phones::add_page(std::vector<Attempt>& ringing, const std::string& domain,
                                                   std::optional<store::Item> from) {
  store::QueryRequest request = store::Query(searches_.table())
                                    .index(kFirstIndex)
                                    .partition(kFirstPartition, kSimulatorList)
                                    .descending()
                                    .limit(kMostPhones);
  request.options.start_key = std::move(from);
  TABELLA_CO_ASSIGN(auto page, co_await store_.query(std::move(request)));
  std::vector<Attempt> attempts;
  std::vector<std::string> ids;
  for (const auto& row : page.items)
    if (auto attempt = to_attempt(row); attempt && (domain.empty() || attempt->domain == domain)) {
      ids.push_back(attempt->search);
      attempts.push_back(std::move(*attempt));
    }
  TABELLA_CO_ASSIGN(const auto searches, co_await searches_.find_all(std::move(ids)));
  for (auto& attempt : attempts) {
    const auto search = searches.find(attempt.search);
    const bool active = search != searches.end() && search->second.status == Status::active;
    if (active && attempt.answer.empty()) ringing.push_back(std::move(attempt));
  }
  co_return std::move(page.last_key);
}

Async<void> Phones::hang_up(const Attempt& attempt) {
  TABELLA_CO_TRY(co_await searches_.note_progress(attempt.search, attempt.id, "hung up"));
  TABELLA_CO_TRY(store::was_made(co_await store_.update_item(unlist_update(searches_.table(), attempt))));
  co_return store::Result<void>();
}

}  // namespace tabella::manhunt
