// How people answer: links, the simulator's phones, and what providers call back with.
#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "base/text.h"
#include "base/xml.h"
#include "manhunt/api.h"
#include "manhunt/http_provider.h"
#include "manhunt/json.h"
#include "manhunt/links.h"
#include "manhunt/twilio.h"
#include "manhunt/wording.h"
#include "net/target.h"

namespace tabella::manhunt {

using boost::asio::awaitable;

namespace {

constexpr size_t kLongestSid = 64;
constexpr const char* kPhoneExample = R"({"press": "1"} or {"reply": "1"} or {"hang_up": true})";

std::string page(std::string_view language, std::string_view title, std::string_view content) {
  return fmt::format(
      "<!doctype html><html lang=\"{2}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><meta name=\"robots\" "
      "content=\"noindex\"><title>{0}</title>"
      "<style>body{{font:17px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 "
      "1rem;color:#1c1c1a;"
      "background:#fbfbf9}}h1{{font-size:1.35rem}}form{{display:flex;gap:.75rem;margin-top:2rem}}button{{"
      "font:inherit;"
      "padding:.7rem 1.4rem;border-radius:.5rem;border:1px solid "
      "#2456a6;background:#fff;color:#2456a6;cursor:pointer}}"
      "button.main{{background:#2456a6;color:#fff}}@media(prefers-color-scheme:dark){{body{{background:#"
      "161615;"
      "color:#eee}}button{{background:#222;color:#9dbcf2;border-color:#9dbcf2}}}}</style></head><body><main>"
      "<h1>{0}</h1>{1}</main></body></html>\n",
      xml_text(title), content, xml_text(language));
}

void answer_page(net::Call& call, int status, std::string html) {
  call.response.status = status;
  call.response.content_type = "text/html; charset=utf-8";
  call.response.add_header(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
      "frame-ancestors 'none'");
  call.response.add_header("X-Content-Type-Options", "nosniff");
  call.response.add_header("Referrer-Policy", "same-origin");
  call.response.add_header("Cache-Control", "no-store");
  call.response.body = std::move(html);
}

void answer_twiml(net::Call& call, std::string twiml) {
  call.response.content_type = "text/xml; charset=utf-8";
  call.response.body = std::move(twiml);
}

net::Route callback_route(std::string path, std::string summary, std::vector<net::Parameter> query) {
  auto route = open_route("POST", std::move(path), std::move(summary), "text/xml");
  route.query = std::move(query);
  route.body = "CallSid=CA…&Digits=1";
  route.max_body = 64 * 1024;
  return route;
}

// As a provider was told it: without what --web-path puts before it.
std::string_view callback_target(std::string_view target) {
  return target.substr(std::min(target.find("/manhunt/callbacks/"), target.size()));
}

}  // namespace

// What a link is for.
struct Api::Linked {
  LinkToken token;
  Search search;
  Attempt attempt;
  std::optional<Contact> contact;
  DomainView domain;

  std::string language() const {
    return language_of_words(language_of(contact.value_or(Contact{}), search, *domain));
  }
  const Phrases& words() const { return phrases(language()); }
  // Others that came with it may be, where it is not.
  bool is_open() const {
    return attempt.answer.empty() && (search.status == Status::active || !attempt.bundle.empty());
  }
};

void Api::add_answer_routes(Routes& routes) {
  routes.add(
      open_route("GET", "/manhunt/r/{token}", "The page of a link: opening it answers nothing", "text/html"),
      &Api::show_link);
  auto follow = open_route("POST", "/manhunt/r/{token}", "Answers by a link", "text/html");
  follow.body = "answer=accept";
  follow.max_body = 4096;
  routes.add(std::move(follow), &Api::follow_link);
  net::Route phones{"GET", "/manhunt/simulator", "manhunt:read",
                    "Shows the simulator's phones that ring, newest first"};
  phones.query = {{"domain", "only those of a domain"}};
  routes.add(std::move(phones), &Api::list_phones);
  net::Route phone{"POST", "/manhunt/simulator/{search}/{attempt}", "manhunt:write",
                   "Answers one of the simulator's phones"};
  phone.body = kPhoneExample;
  routes.add(std::move(phone), &Api::use_phone);
  const net::Parameter search{"search", "the one that it is about"};
  const net::Parameter attempt{"attempt", "the one that it answers"};
  const net::Parameter key{"key", "of another provider than Twilio, if it sends no bearer token"};
  routes.add(callback_route("/manhunt/callbacks/{provider}/call", "From a provider: a digit was pressed",
                            {search, attempt, key}),
             &Api::call_callback);
  routes.add(callback_route("/manhunt/callbacks/{provider}/status", "Twilio's: how a call or text goes on",
                            {search, attempt}),
             &Api::status_callback);
  routes.add(
      callback_route("/manhunt/callbacks/{provider}/text", "From a provider: a text has come in", {key}),
      &Api::text_callback);
}

// --- links

awaitable<std::optional<Api::Linked>> Api::linked(Call& call) {
  const auto refuse = [&](std::string_view why) {
    answer_page(call, 404, page("en", "This link is not good", fmt::format("<p>{}</p>", xml_text(why))));
  };
  constexpr std::string_view kNotWhole = "It is not whole. Copy all of it from the message.";
  auto token = parse_link_token(call.path("token"));
  if (!token) {
    refuse(kNotWhole);
    co_return std::nullopt;
  }
  const auto search = co_await parts_.searches.find(token->search);
  if (!search) {
    house::refuse(call, search.error());
    co_return std::nullopt;
  }
  if (!*search || !is_genuine(*token, **search)) {
    refuse(kNotWhole);
    co_return std::nullopt;
  }
  if (token->expires <= parts_.clock.now()) {
    refuse("Its time is over.");
    co_return std::nullopt;
  }
  const auto attempt = co_await parts_.searches.find_attempt(token->search, token->attempt);
  const auto domain = co_await parts_.domains.find((*search)->domain);
  if (!attempt || !domain) {
    house::refuse(call, attempt ? domain.error() : attempt.error());
    co_return std::nullopt;
  }
  if (!*attempt) {
    refuse("There is no such message.");
    co_return std::nullopt;
  }
  const auto contact = co_await parts_.contacts.find((*search)->domain, (*attempt)->contact);
  if (!contact) {
    house::refuse(call, contact.error());
    co_return std::nullopt;
  }
  co_return Linked{.token = std::move(*token),
                   .search = **search,
                   .attempt = **attempt,
                   .contact = *contact,
                   .domain = *domain};
}

awaitable<void> Api::show_link(Call& call) {
  const auto link = co_await linked(call);
  if (!link) co_return;
  auto summary = summary_of(link->search);
  if (summary.empty()) summary = without_links(link->attempt.text);
  const auto language = link->language();
  const auto& words = link->words();
  if (!link->is_open())
    co_return answer_page(call, 200, page(language, summary, fmt::format("<p>{}</p>", xml_text(words.over))));
  answer_page(call, 200,
              page(language, summary,
                   fmt::format("<p>{}</p><form method=\"post\"><button class=\"main\" name=\"answer\" "
                               "value=\"accept\">{}</button><button name=\"answer\" "
                               "value=\"decline\">{}</button></form>",
                               xml_text(link->attempt.contact_name), words.accept, words.decline)));
}

awaitable<void> Api::follow_link(Call& call) {
  const auto form = net::parse_form(call.request.body);
  const auto given = form.find("answer");
  const auto link = co_await linked(call);
  if (!link) co_return;
  if (given == form.end() || (given->second != "accept" && given->second != "decline"))
    co_return answer_page(call, 400,
                          page("en", "Not answered", "<p>Open the link again, and press a button.</p>"));
  const bool accept = given->second == "accept";
  bool won = false;
  if (link->is_open()) {
    const auto ended = co_await parts_.searches.answer(
        link->search.id,
        {.accept = accept, .attempt = link->token.attempt, .how = "link", .by = link->attempt.contact_name});
    if (!ended) co_return house::refuse(call, ended.error());
    won = *ended && (*ended)->won;
  }
  const auto summary = summary_of(link->search);
  answer_page(call, won ? 200 : 409,
              page(link->language(), summary.empty() ? link->search.id : summary,
                   fmt::format("<p>{}</p>", xml_text(outcome_phrase(link->words(), accept, won)))));
}

// --- the simulator

awaitable<void> Api::list_phones(Call& call) {
  const auto ringing = co_await parts_.phones.ringing(call.text("domain"));
  if (!ringing) co_return house::refuse(call, ringing.error());
  const bool with_links = call.caller.may("manhunt:write");
  JsonObjectWriter object(call.answer_json());
  JsonArrayWriter phones(object.key("phones"));
  for (const auto& attempt : *ringing) {
    JsonObjectWriter one(phones.element());
    one.string("domain", attempt.domain);
    one.string("search", attempt.search);
    one.string("attempt", attempt.id.text());
    one.string("contact", attempt.contact);
    one.string("contact_name", attempt.contact_name);
    one.string("type", name_of(attempt.kind));
    one.string("destination", attempt.destination);
    one.string("text", with_links ? attempt.text : without_links(attempt.text));
    one.string("since", sortable_time(attempt.started));
  }
}

awaitable<void> Api::use_phone(Call& call) {
  const auto id = AttemptId::parse(call.path("attempt"));
  auto body = call.json(kPhoneExample);
  if (!body) co_return;
  const auto press = body->text("press", "");
  const auto reply = body->text("reply", "");
  const bool hang_up = body->flag("hang_up", false);
  body->no_others();
  if (call.answered()) co_return;
  if (press.empty() + reply.empty() + !hang_up != 2)
    co_return call.refuse(400, fmt::format("expected one of {}", kPhoneExample));
  const auto full = co_await parts_.searches.find_full(call.path("search"));
  if (!full) co_return house::refuse(call, full.error());
  const auto attempt = *full && id ? std::ranges::find((*full)->attempts, *id, &Attempt::id)
                                   : std::vector<Attempt>::iterator();
  const bool rings = *full && id && attempt != (*full)->attempts.end() && attempt->simulated;
  if (!rings) co_return call.refuse(404, "no phone of the simulator rings for that attempt");
  if (hang_up) {
    const auto hung = co_await parts_.phones.hang_up(*attempt);
    if (!hung) co_return house::refuse(call, hung.error());
    JsonObjectWriter object(call.answer_json());
    co_return write_search(object, (*full)->search);
  }
  const auto meaning = meaning_of(press.empty() ? reply : press);
  if (!meaning) co_return call.refuse(400, "press or reply: 1 accepts, 2 declines");
  auto ended = co_await parts_.searches.answer(
      (*full)->search.id,
      {.accept = *meaning, .attempt = id, .how = "simulator", .by = attempt->contact_name});
  co_await answer_ended(call, std::move(ended));
}

// --- callbacks

// What was posted, if it is signed by the provider. Nothing: that was answered.
std::optional<Api::Form> Api::signed_form(Call& call) const {
  const auto* const twilio = find_twilio(parts_.providers, call.path("provider"));
  if (!twilio) {
    call.refuse(404, "there is no provider of that name that calls back");
    return std::nullopt;
  }
  const bool is_signed = twilio->is_signed(callback_target(call.request.target), call.request.body,
                                           call.request.header("x-twilio-signature"));
  if (is_signed) return net::parse_form(call.request.body);
  call.refuse(403,
              "x-twilio-signature is not that of the provider's account; is --manhunt-url what it was told?");
  return std::nullopt;
}

// The attempt that a callback's address names. Nothing: that was answered.
struct Api::Asked {
  Search search;
  Attempt attempt;
};

awaitable<std::optional<Api::Asked>> Api::asked(Call& call) {
  const auto id = AttemptId::parse(call.text("attempt"));
  auto search = co_await parts_.searches.find(call.text("search"));
  auto attempt = search && *search && id ? co_await parts_.searches.find_attempt((*search)->id, *id)
                                         : store::Result<std::optional<Attempt>>(std::nullopt);
  if (!search || !attempt) {
    house::refuse(call, search ? attempt.error() : search.error());
    co_return std::nullopt;
  }
  if (!*attempt) {
    call.refuse(404, "there is no such attempt");
    co_return std::nullopt;
  }
  co_return Asked{.search = std::move(**search), .attempt = std::move(**attempt)};
}

// What is said to somebody who has pressed that; nothing: it means nothing.
awaitable<store::Result<std::optional<std::string>>> Api::press(const Asked& asked, std::string_view digits) {
  const auto meaning = meaning_of(digits);
  if (!meaning) co_return std::nullopt;
  TABELLA_CO_ASSIGN(const auto ended,
                    co_await parts_.searches.answer(asked.search.id, {.accept = *meaning,
                                                                      .attempt = asked.attempt.id,
                                                                      .how = "phone",
                                                                      .by = asked.attempt.contact_name}));
  co_return std::string(outcome_phrase(phrases(asked.attempt.language), *meaning, ended && ended->won));
}

// What was pressed, as Twilio has it, or as the file with the providers says for another.
awaitable<void> Api::call_callback(Call& call) {
  const auto* const other = find_http_provider(parts_.providers, call.path("provider"));
  std::string digits;
  if (other) {
    auto reply = other->read_reply(ChannelKind::phone, call.request, call.text("key"));
    if (!reply) co_return call.refuse(reply.error().status, reply.error().message);
    digits = std::move(reply->text);
  } else {
    const auto form = signed_form(call);
    if (!form) co_return;
    if (const auto pressed = form->find("Digits"); pressed != form->end()) digits = pressed->second;
  }
  const auto asked = co_await this->asked(call);
  if (!asked) co_return;
  const auto said = co_await press(*asked, digits);
  if (!said) co_return house::refuse(call, said.error());
  // Another digit: once more.
  if (other)
    co_return JsonObjectWriter(call.answer_json()).string("say", said->value_or(asked->attempt.text));
  const auto& language = asked->attempt.language;
  if (*said) co_return answer_twiml(call, say_twiml(**said, language_of_words(language)));
  const Message again{.search = asked->search.id, .language = language, .text = asked->attempt.text};
  answer_twiml(call,
               call_twiml(again, fmt::format("{}{}", parts_.base, callback_target(call.request.target))));
}

awaitable<void> Api::status_callback(Call& call) {
  const auto form = signed_form(call);
  if (!form) co_return;
  const auto id = AttemptId::parse(call.text("attempt"));
  auto status = form->find("CallStatus");
  if (status == form->end()) status = form->find("MessageStatus");
  if (!id || status == form->end() || status->second.size() > 40)
    co_return call.refuse(400, "expected CallStatus or MessageStatus");
  auto sid = form->find("CallSid");
  if (sid == form->end()) sid = form->find("MessageSid");
  const auto& why = status->second;
  const auto done =
      co_await note_status(call.text("search"), *id, why, sid == form->end() ? "" : sid->second);
  if (!done) co_return house::refuse(call, done.error());
  call.response.status = 204;
}

// What is said of a try before the last has been seen to.
store::Async<void> Api::note_status(std::string search, AttemptId id, std::string status, std::string sid) {
  TABELLA_CO_ASSIGN(const auto attempt, co_await parts_.searches.find_attempt(search, id));
  if (!attempt || attempt->tries.empty()) co_return store::Result<void>();
  const auto& known = attempt->tries.back().reference;  // empty: the provider was faster than we are
  const bool is_seen_to = std::ranges::any_of(attempt->tries | std::views::take(attempt->tries.size() - 1),
                                              [&](const Try& before) { return before.reference == sid; });
  if (is_seen_to || (!known.empty() && known != sid)) co_return store::Result<void>();
  TABELLA_CO_TRY(co_await parts_.searches.note_progress(search, id, printable(status)));
  // What the provider took and could not deliver; who is busy, or does not answer, was reached.
  const bool is_lost = status == "failed" || status == "undelivered";
  const bool is_sid = !sid.empty() && sid.size() <= kLongestSid && !sid.contains('|');
  if (is_lost && is_sid) TABELLA_CO_TRY(co_await parts_.searches.note_undelivered(search, id, sid, status));
  co_return store::Result<void>();
}

// A person's text, as Twilio has it, or as the file with the providers says for another.
awaitable<void> Api::text_callback(Call& call) {
  if (const auto* const other = find_http_provider(parts_.providers, call.path("provider"))) {
    const auto reply = other->read_reply(ChannelKind::text, call.request, call.text("key"));
    if (!reply) co_return call.refuse(reply.error().status, reply.error().message);
    const auto answer = co_await parts_.replies.take(reply->from, reply->text);
    if (!answer) co_return house::refuse(call, answer.error());
    co_return JsonObjectWriter(call.answer_json()).string("reply", *answer);
  }
  const auto form = signed_form(call);
  if (!form) co_return;
  const auto from = form->find("From");
  const auto text = form->find("Body");
  if (from == form->end() || text == form->end()) co_return call.refuse(400, "expected From and Body");
  const auto answer = co_await parts_.replies.take(from->second, text->second);
  if (!answer) co_return house::refuse(call, answer.error());
  answer_twiml(call, reply_twiml(*answer));
}

}  // namespace tabella::manhunt
