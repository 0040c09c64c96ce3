// Who may come in over HTTP: people by name and password (a session, or Basic), programs by API tokens with
// scopes, AWS clients by SigV4 with the access keys of the DynamoDB door. One check for all systems.
//
// With neither users nor tokens everybody may, which is for programs on this machine: pages of other origins
// are refused by the router in any case. Access keys alone do not close this door: they are there for the
// DynamoDB door, and whoever comes here without credentials still comes in.
//
// A credential of ours that is wrong is refused even where everybody may come in: it is a mistake to be told.
// What cannot be ours (Basic where there are no users, a signature where there are no keys, somebody else's
// bearer token) counts as none: a proxy in front of us may have its own. So does a session that has ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "access/password_check.h"
#include "access/sessions.h"
#include "access/tokens.h"
#include "net/router.h"
#include "protocol/sigv4.h"

namespace tabella::access {

// What there is where there is a file of users.
struct Users {
  PasswordCheck& passwords;
  Sessions& sessions;
};

// Thread-safe; borrows what it is given.
class AccessGate final : public net::Gate {
 public:
  using Admission = std::variant<net::Caller, net::Refusal>;

  AccessGate(Tokens& tokens, std::optional<Users> users, protocol::SignatureVerifier signatures)
      : tokens_(tokens), users_(users), signatures_(std::move(signatures)) {}

  boost::asio::awaitable<Admission> admit(const net::HttpRequest& request) override;

 private:
  // Nothing: there are no credentials that could be ours.
  using Found = std::optional<Admission>;
  boost::asio::awaitable<Found> by_credentials(const net::HttpRequest& request);
  boost::asio::awaitable<Found> by_token(std::string_view secret);
  boost::asio::awaitable<Found> by_password(std::string_view encoded);
  boost::asio::awaitable<Found> by_session(std::string_view cookie);
  Found by_signature(const net::HttpRequest& request) const;
  boost::asio::awaitable<Admission> without_credentials();

  Tokens& tokens_;
  const std::optional<Users> users_;
  const protocol::SignatureVerifier signatures_;
};

}  // namespace tabella::access
