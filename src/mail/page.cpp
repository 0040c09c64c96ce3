// A plain page that needs no build step and no script: a list, a search, a message.
#include <fmt/format.h>

#include "mail/api.h"
#include "mail/summary.h"
#include "mime/html.h"
#include "mime/utf8.h"

namespace tabella::mail {

using boost::asio::awaitable;
using mime::escape_html;

namespace {

constexpr size_t kRows = 50;
constexpr size_t kShownSource = 512 * 1024;

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--mark:#2563eb}
*{box-sizing:border-box}body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem}
header{display:flex;gap:1rem;align-items:center;flex-wrap:wrap;margin-bottom:1rem}
header h1{font-size:1.25rem;margin:0}header h1 a{color:inherit;text-decoration:none}
header form{display:flex;gap:.5rem;flex:1;min-width:14rem}
input,button,select{font:inherit;padding:.4rem .7rem;border:1px solid var(--line);border-radius:.4rem;background:var(--soft);color:inherit}
input[type=search]{flex:1;min-width:0}button{cursor:pointer}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.5rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
.list td{max-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.list td:first-child{width:26%}.list td:last-child{width:11.5rem;text-align:right;color:#888}
.list a{color:inherit;text-decoration:none;display:block;overflow:hidden;text-overflow:ellipsis}.list tr:hover{background:var(--soft)}
.unread{font-weight:600}.snippet{color:#888;font-weight:400}.tag{background:var(--mark);color:#fff;border-radius:1rem;padding:0 .5rem;font-size:.8rem;font-weight:400}
nav a{margin-right:1rem}.tabs{display:flex;gap:.25rem;border-bottom:1px solid var(--line);margin:1rem 0}
.tabs a{padding:.4rem .8rem;color:inherit;text-decoration:none;border-radius:.4rem .4rem 0 0}.tabs a.on{background:var(--soft);border-bottom:2px solid var(--mark)}
iframe{width:100%;height:70vh;border:1px solid var(--line);background:#fff;border-radius:.4rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--soft);padding:1rem;border-radius:.4rem}
.empty{padding:4rem 1rem;text-align:center;color:#888}.row{display:flex;gap:.5rem;flex-wrap:wrap;align-items:center}
@media(max-width:40rem){.list td:first-child{display:none}.list td:last-child{width:5.5rem}}
)";

std::string shown_address(const std::vector<mime::Address>& addresses, const std::string& fallback) {
  if (addresses.empty()) return fallback.empty() ? "<>" : fallback;
  std::string text;
  for (const auto& address : addresses)
    text += (text.empty() ? "" : ", ") + (address.name.empty() ? address.address : address.name);
  return text;
}

std::string begin_html(const std::string& base, std::string_view title, std::string_view query) {
  return fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{} · Tabella mail</title><style>{}</style>"
      "<header><h1><a href=\"{}/\">Tabella mail</a></h1><form action=\"{}/\"><input type=\"search\" "
      "name=\"q\" "
      "value=\"{}\" placeholder=\"Search: words, from:, to:, subject:, has:attachment, after:2h …\" "
      "aria-label=\"Search\"><button>Search</button></form></header>",
      escape_html(title), kStyle, base, base, escape_html(query));
}

void answer_page(net::HttpResponse& response, std::string html) {
  response.content_type = "text/html; charset=utf-8";
  response.add_header(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; img-src 'self' data:; "
      "form-action 'self'; base-uri 'none'; frame-ancestors 'none'");
  response.add_header("X-Content-Type-Options", "nosniff");
  response.add_header("Referrer-Policy", "same-origin");
  response.add_header("Cache-Control", "no-store");
  response.body = std::move(html);
}

void go_to(net::HttpResponse& response, const std::string& where) {
  response.status = 303;
  response.add_header("Location", where);
}

std::string short_time(Nanoseconds created) {
  auto text = time_text(created).substr(0, 19);
  text[10] = ' ';
  return text;
}

void append_row(std::string& html, const std::string& base, const Message& message) {
  const auto parsed = mime::parse(message.raw);
  const auto link = fmt::format("{}/view/{}", base, net::percent_encode(message.id));
  std::string tags;
  for (const auto& tag : message.tags)
    tags += fmt::format(" <span class=\"tag\">{}</span>", escape_html(tag));
  const auto subject = parsed.subject.empty() ? "(no subject)" : parsed.subject;
  const auto text = snippet(parsed);
  html += fmt::format(
      "<tr{}><td><a href=\"{}\" tabindex=\"-1\">{}</a><td><a href=\"{}\">{}{}{} <span "
      "class=\"snippet\">{}</span></a>"
      "<td>{}",
      message.read ? "" : " class=\"unread\"", link, escape_html(shown_address(parsed.from, message.from)),
      link, parsed.attachments() > 0 ? "📎 " : "", escape_html(subject), tags,
      escape_html(text.empty() ? "" : "— " + text), short_time(message.created));
}

struct Tab {
  std::string_view name;
  std::string_view label;
};

void append_parts(std::string& html, const std::string& api, const mime::Message& parsed) {
  html += "<table><tr><th>Part<th>Type<th>Name<th>Size";
  for (size_t i = 0; i < parsed.parts.size(); ++i) {
    const auto& part = parsed.parts[i];
    html += fmt::format("<tr><td><a href=\"{}/parts/{}\">{}</a><td>{}<td>{}<td>{}", api, i, i,
                        escape_html(part.content_type), escape_html(part.filename), part.content().size());
  }
  html += "</table>";
}

void append_headers(std::string& html, const mime::Message& parsed) {
  html += "<table>";
  for (const auto& header : parsed.headers)
    html += fmt::format("<tr><th>{}<td>{}", escape_html(header.name), escape_html(header.value));
  html += "</table>";
}

std::string message_page(const std::string& base, const Message& message, std::string shown) {
  const auto parsed = mime::parse(message.raw);
  const auto id = net::percent_encode(message.id);
  const auto api = fmt::format("{}/api/v3/messages/{}", base, id);
  auto html = begin_html(base, parsed.subject, "");
  html += fmt::format("<h2>{}</h2><table>",
                      escape_html(parsed.subject.empty() ? "(no subject)" : parsed.subject));
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) html += fmt::format("<tr><th>{}<td>{}", name, escape_html(value));
  };
  line("From", shown_address(parsed.from, message.from));
  line("To", shown_address(parsed.to, fmt::format("{}", fmt::join(message.to, ", "))));
  if (!parsed.cc.empty()) line("Cc", shown_address(parsed.cc, ""));
  line("Delivered to", mime::to_valid_utf8(fmt::format("{}", fmt::join(message.to, ", "))));
  line("Received", short_time(message.created));
  html += "</table>";
  static constexpr Tab kTabs[] = {
      {"html", "HTML"}, {"text", "Plain"}, {"source", "Source"}, {"headers", "Headers"}, {"parts", "Parts"}};
  if (shown.empty()) shown = parsed.html() ? "html" : "text";
  html += "<div class=\"tabs\">";
  for (const auto& [name, label] : kTabs)
    if (name != "html" || parsed.html())
      html += fmt::format("<a href=\"{}/view/{}?tab={}\"{}>{}</a>", base, id, name,
                          shown == name ? " class=\"on\"" : "", label);
  html += "</div>";
  if (shown == "html" && parsed.html()) {
    html += fmt::format(
        "<iframe sandbox=\"allow-popups allow-popups-to-escape-sandbox\" referrerpolicy=\"no-referrer\" "
        "title=\"The message\" src=\"{}/html\"></iframe>",
        api);
  } else if (shown == "source") {
    html += fmt::format(
        "<pre>{}</pre><p><a href=\"{}/raw\">Download</a></p>",
        escape_html(mime::to_valid_utf8(std::string_view(message.raw).substr(0, kShownSource))), api);
  } else if (shown == "headers") {
    append_headers(html, parsed);
  } else if (shown == "parts") {
    append_parts(html, api, parsed);
  } else {
    const auto text = parsed.text()   ? parsed.text()->text_within(kShownSource)
                      : parsed.html() ? mime::html_to_text(parsed.html()->text_within(kShownSource))
                                      : "";
    html += fmt::format("<pre>{}</pre>", escape_html(text));
  }
  html += fmt::format(
      "<p class=\"row\"><form method=\"post\" action=\"{}/view/{}/delete\"><button>Delete</button></form>"
      "<form method=\"post\" action=\"{}/view/{}/release\" class=\"row\"><input name=\"email\" "
      "placeholder=\"someone@example.com\" "
      "aria-label=\"Release to\" required><input name=\"host\" placeholder=\"SMTP host\" aria-label=\"SMTP "
      "host\" required>"
      "<input name=\"port\" value=\"25\" size=\"5\" aria-label=\"Port\"><button>Release</button></form></p>",
      base, id, base, id);
  return html;
}

}  // namespace

awaitable<void> Api::page_list(Call& call) {
  const auto query = call.target.get("q");
  const auto start = number_in(call.target, "start", 0);
  const auto& base = options_.web_path;
  auto html = begin_html(base, query.empty() ? "Messages" : query, query);
  const auto filter = parse_query(query, mail_.clock().now());
  if (!filter) {
    html += fmt::format("<p class=\"empty\">{}</p>", escape_html(filter.error()));
    co_return answer_page(call.response, std::move(html));
  }
  auto page = co_await mail_.find(*filter, start, kRows, Load::head, deadline_of(call.target));
  if (!page) co_return answer_error(call.response, page.error());
  const size_t count = page->messages.size() + page->later.size();
  if (count == 0) {
    html += query.empty() ? "<p class=\"empty\">No mail yet. Send some to the SMTP port, and reload.</p>"
                          : "<p class=\"empty\">Nothing matches.</p>";
  } else {
    html += "<table class=\"list\">";
    const auto show = [&](Message& message) -> store::Async<void> {
      append_row(html, base, message);
      co_return store::Result<void>();
    };
    const auto shown = co_await each_message(*page, show);
    if (!shown) co_return answer_error(call.response, shown.error());
    html += "</table>";
  }
  html += "<p class=\"row\"><nav>";
  const auto search = query.empty() ? "" : "&q=" + net::percent_encode(query);
  if (start > 0)
    html += fmt::format("<a href=\"{}/?start={}{}\">← newer</a>", base, start > kRows ? start - kRows : 0,
                        search);
  if (start + count < page->total)
    html += fmt::format("<a href=\"{}/?start={}{}\">older →</a>", base, start + kRows, search);
  html += fmt::format("</nav><span>{}{} messages</span>", page->exact ? "" : "about ", page->total);
  if (page->total > 0 && query.empty())
    html += fmt::format("<form method=\"post\" action=\"{}/delete-all\"><button>Delete all</button></form>",
                        base);
  html += "</p>";
  answer_page(call.response, std::move(html));
}

awaitable<void> Api::page_message(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  if (!message->read) co_await mail_.set_read(message->id, true);
  const auto make = [&] { return message_page(options_.web_path, *message, call.target.get("tab")); };
  answer_page(call.response, co_await mail_.aside(message->size, make));
}

awaitable<void> Api::page_delete(Call& call) {
  const auto removed = co_await mail_.remove(call.captured.front());
  if (!removed) co_return answer_error(call.response, removed.error());
  go_to(call.response, options_.web_path + "/");
}

awaitable<void> Api::page_delete_all(Call& call) {
  const auto removed = co_await mail_.remove_all();
  if (!removed) co_return answer_error(call.response, removed.error());
  go_to(call.response, options_.web_path + "/");
}

awaitable<void> Api::page_release(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  constexpr size_t kLargestForm = 64 * 1024;
  if (call.request.body.size() > kLargestForm)
    co_return answer_error(call.response, 413, "the form is too large");
  const auto form = net::parse_form(call.request.body);
  const auto field = [&](std::string_view name) {
    const auto found = form.find(name);
    return found == form.end() ? std::string() : found->second;
  };
  OutgoingServer how{.email = field("email"), .host = field("host"), .port = field("port")};
  const auto released = co_await release_.release(*message, std::move(how));
  if (!released) {
    auto html = begin_html(options_.web_path, "Not released", "");
    html +=
        fmt::format("<p class=\"empty\">It was not released: {}</p>", escape_html(released.error().message));
    answer_page(call.response, std::move(html));
    call.response.status = released.error().status;
    co_return;
  }
  go_to(call.response, fmt::format("{}/view/{}", options_.web_path, net::percent_encode(message->id)));
}

}  // namespace tabella::mail
