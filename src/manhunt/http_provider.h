// Any service for calls and texts that is reached over HTTP, without code for it: templates say what it is
// asked, and what of its answers, and of the texts that it hands on, is what.
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "handlebars/template.h"
#include "manhunt/channel.h"
#include "net/http.h"
#include "net/outbound.h"

namespace tabella::manhunt {

// How values are written into a request, so that none of them can end what it stands in.
enum class Escape { none, json, form, xml };

// What people answer, and the service hands on: texts at POST /manhunt/callbacks/NAME/text, and what was
// pressed during a call at the message's `answer_url`.
struct HttpReplies {
  std::string key;            // in "Authorization: Bearer …", or ?key=…
  handlebars::Template from;  // the number; not looked at for calls
  handlebars::Template text;
};

struct HttpProviderSettings {
  std::string name;
  std::vector<ChannelKind> channels;
  std::string secret;
  std::string method = "POST";
  handlebars::Template url;
  std::vector<std::pair<std::string, handlebars::Template>> headers;
  std::optional<handlebars::Template> body;
  Escape escape = Escape::none;
  // Of the JSON of the answer.
  std::optional<handlebars::Template> reference;
  std::optional<handlebars::Template> error;  // where it says something, the message was not taken
  std::optional<HttpReplies> replies;
  std::chrono::milliseconds timeout{15'000};
};

class HttpProvider final : public Provider {
 public:
  // What others reach us by begins with `base`.
  HttpProvider(HttpProviderSettings settings, std::string base, net::Outbound& outbound)
      : settings_(std::move(settings)), base_(std::move(base)), outbound_(outbound) {}
  std::string_view name() const override { return settings_.name; }
  bool serves(ChannelKind kind) const override;
  bool takes_replies() const override { return settings_.replies.has_value(); }
  boost::asio::awaitable<Sent> send(const Message& message) override;

  struct Reply {
    std::string from;
    std::string text;
  };
  struct Refused {
    int status = 400;
    std::string message;
  };
  // What came in of such a message, with the key that its address had.
  std::expected<Reply, Refused> read_reply(ChannelKind kind, const net::HttpRequest& request,
                                           std::string_view key) const;

 private:
  std::optional<net::OutboundRequest> request_for(const Message& message) const;
  // Nothing: the message cannot be written so.
  std::optional<std::string> rendered(const handlebars::Template& text, const Message& message,
                                      Escape escape) const;

  void read_answer(Sent& sent, std::string_view body) const;
  std::string answer_url(const Message& message) const;

  const HttpProviderSettings settings_;
  const std::string base_;
  net::Outbound& outbound_;
};

}  // namespace tabella::manhunt
