// The entities of one kind in one journal, by their names: each is recovered when it is first asked for, and
// kept in memory for as long as it is used.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "library/entity.h"

namespace tabella {

struct EntitiesOptions {
  size_t at_most = 10'000;  // in memory; those in use are not counted out
  std::chrono::milliseconds idle = std::chrono::minutes{5};
};

// Thread-safe. Commands to one entity are run one after the other, those to several side by side. Outlives
// them.
template <class State, class Event>
class Entities {
 public:
  Entities(Journals journals, std::string journal, EntityKind<State, Event> kind,
           EntitiesOptions options = {})
      : journals_(journals), journal_(std::move(journal)), kind_(std::move(kind)), options_(options) {}
  Entities(const Entities&) = delete;
  Entities& operator=(const Entities&) = delete;

  // Entity::execute. A command that was superseded is not decided again by itself: the next one recovers.
  template <class Decide>
  AsyncOutcome<Done> execute(std::string pid, Decide decide, std::string command_id = {}) {
    const Use use(*this, std::move(pid));
    co_return co_await use.entity().recover_and_execute(std::move(decide), std::move(command_id));
  }

  // The state of an entity, as its writer.
  AsyncOutcome<State> read(std::string pid) {
    const Use use(*this, std::move(pid));
    co_return co_await use.entity().recover_and_read();
  }

  // Lets go of entities that nobody has used for a while, and of the longest unused where there are too many.
  // Every command does so, too.
  void passivate() {
    const std::lock_guard lock(mutex_);
    drop_unused();
  }

  size_t in_memory() const {
    const std::lock_guard lock(mutex_);
    return kept_.size();
  }

 private:
  struct Kept {
    Kept(const Entities& of, std::string pid)
        : name(std::move(pid)), entity(of.journals_, of.journal_, name, of.kind_) {}

    const std::string name;
    Entity<State, Event> entity;
    size_t uses = 0;  // commands that are under way
    Elapsed last_used{0};
  };
  using Place = std::list<Kept>::iterator;

  // Keeps an entity in memory while a command is under way.
  class Use {
   public:
    Use(Entities& entities, std::string pid) : entities_(entities), place_(entities.take(std::move(pid))) {}
    ~Use() { entities_.give_back(place_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    Entity<State, Event>& entity() const { return place_->entity; }

   private:
    Entities& entities_;
    const Place place_;
  };

  Place take(std::string pid) {
    const std::lock_guard lock(mutex_);
    auto found = by_name_.find(pid);
    if (found == by_name_.end()) {
      kept_.emplace_front(*this, pid);
      found = by_name_.emplace(std::move(pid), kept_.begin()).first;
    }
    ++found->second->uses;
    note_use(found->second);
    drop_unused();
    return found->second;
  }

  void give_back(Place place) {
    const std::lock_guard lock(mutex_);
    --place->uses;
    note_use(place);
    drop_unused();
  }

  void note_use(Place place) {
    place->last_used = journals_.clock.elapsed();
    kept_.splice(kept_.begin(), kept_, place);
  }

  void drop_unused() {
    const auto now = journals_.clock.elapsed();
    auto at = kept_.end();
    while (at != kept_.begin()) {
      --at;
      if (kept_.size() <= options_.at_most && now - at->last_used < options_.idle) return;
      if (at->uses > 0) continue;
      by_name_.erase(at->name);
      at = kept_.erase(at);
    }
  }

  const Journals journals_;
  const std::string journal_;
  const EntityKind<State, Event> kind_;
  const EntitiesOptions options_;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // guarded by mutex_, and so is the next; the last used first
  std::unordered_map<std::string, Place, KeyedHash, std::equal_to<>> by_name_;  // strangers choose names
};

}  // namespace tabella
