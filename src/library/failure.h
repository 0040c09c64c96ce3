// What can go wrong with a command to an entity.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "store/error.h"

namespace tabella {

struct Failure {
  enum class Kind {
    refused,     // by the command itself: nothing was persisted
    superseded,  // somebody else has written meanwhile: nothing was persisted; recover, and decide anew
    unknown,     // no answer came: it was persisted or not, which recovering shows
    unreadable,  // the history cannot be read: an event was deleted, is missing or makes no sense
    store,       // the store has failed: nothing was persisted
  };

  Failure(Kind k, std::string m) : kind(k), message(std::move(m)) {}
  Failure(store::Error error) : kind(Kind::store), message(std::move(error.message)) {}  // NOLINT

  Kind kind;
  std::string message;
};

template <class T = void>
using Outcome = std::expected<T, Failure>;

template <class T = void>
using AsyncOutcome = boost::asio::awaitable<Outcome<T>>;

inline std::unexpected<Failure> failed(Failure::Kind kind, std::string message) {
  return std::unexpected(Failure(kind, std::move(message)));
}

}  // namespace tabella
