#include "journal/journal.h"

#include "journal/event_attributes.h"
#include "journal/head_attributes.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::journal {

namespace names = head_attributes;
using store::Async;

Journal::Journal(store::Store& store, const Clock& clock, const Layout& layout, Options options,
                 Told appended)
    : store_(store),
      clock_(clock),
      layout_(layout),
      options_(std::move(options)),
      appended_(std::move(appended)),
      heads_(store, options_.heads_table) {}

Async<bool> Journal::confirm(Entity entity, uint64_t number, std::vector<std::string> by) {
  TABELLA_CO_ASSIGN(const auto there, co_await extent(entity));
  if (number < there.lowest || number > there.highest) co_return false;
  co_return store::was_made(
      co_await store_.update_item(store::Update(layout_.table(), layout_.key_of(entity, number))
                                      .add(event_attributes::kConfirmations, by)
                                      .when(store::exists(layout_.key_attribute()))));
}

Async<uint64_t> Journal::take_epoch(Entity entity) {
  while (true) {
    auto update = store::Update(heads_.table(), Heads::key_of(entity))
                      .add(names::kEpoch, 1)
                      .when(store::exists(names::kId))
                      .when(store::absent(names::kEpoch) || store::less(names::kEpoch, kHighestEpoch))
                      .returning(store::ReturnValues::all_new);
    auto taken = co_await store_.update_item(std::move(update));
    if (taken) co_return static_cast<uint64_t>(store::number_of(*taken->attributes, names::kEpoch));
    if (!store::failed_its_condition(taken.error())) co_return store::error_of(taken);
    TABELLA_CO_ASSIGN(const auto head, co_await adopt(entity));
    if (head && head->epoch >= kHighestEpoch)
      co_return store::refuse(
          "the entity has the highest epoch there is, which somebody has chosen: no writer can have a higher "
          "one");
    if (head) continue;
    TABELLA_CO_TRY(
        store::was_made(co_await store_.update_item(store::Update(heads_.table(), Heads::key_of(entity))
                                                        .set(names::kHighest, 0)
                                                        .when(store::absent(names::kId)))));
  }
}

}  // namespace tabella::journal
