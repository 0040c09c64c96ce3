#include "mail/page_html.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mail/shown.h"
#include "mail/summary.h"
#include "mime/html.h"
#include "mime/utf8.h"
#include "net/target.h"

namespace tabella::mail {

using mime::escape_html;

namespace {

constexpr size_t kShownSource = 512 * 1024;

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--page:#f5f6f8;--card:#fff;--text:#1c2430;--soft:#667085;--line:#e4e7ec;--hover:#f2f5fb;--mark:#2f5bea;--mark-soft:#e8eefe;--bad:#b42318;--shadow:0 1px 2px #1018280f,0 1px 3px #1018281a}
@media(prefers-color-scheme:dark){:root{--page:#0f131a;--card:#171c25;--text:#e6e9ef;--soft:#98a2b3;--line:#2a313d;--hover:#1e2530;--mark:#7d9bff;--mark-soft:#232f52;--bad:#ff8a7d;--shadow:none}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;margin:0;background:var(--page);color:var(--text)}
a{color:var(--mark)}a:focus-visible,button:focus-visible,input:focus-visible,summary:focus-visible{outline:2px solid var(--mark);outline-offset:1px}
.top{background:var(--card);border-bottom:1px solid var(--line)}
.top>div{max-width:72rem;margin:0 auto;padding:.7rem 1rem;display:flex;gap:.7rem 1.5rem;align-items:center;flex-wrap:wrap}
.brand{display:flex;gap:.6rem;align-items:center;font-weight:650;font-size:1.05rem;color:inherit;text-decoration:none}
.brand svg{width:1.7rem;height:1.7rem;display:block}
.search{display:flex;gap:.5rem;flex:1 1 16rem;min-width:0}.search input{flex:1;min-width:0}
input,button{font:inherit;color:inherit;padding:.42rem .75rem;border:1px solid var(--line);border-radius:.5rem;background:var(--page);max-width:100%}
button{cursor:pointer;background:var(--card);font-weight:500}button:hover{background:var(--hover)}
.main{background:var(--mark);border-color:var(--mark);color:#fff}.main:hover{background:var(--mark);filter:brightness(1.08)}
@media(prefers-color-scheme:dark){.main{color:#0f131a}}
.danger{color:var(--bad)}
main{max-width:72rem;margin:0 auto;padding:1rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:.75rem;box-shadow:var(--shadow);overflow:hidden}
.bar{display:flex;gap:.5rem 1rem;align-items:center;justify-content:space-between;flex-wrap:wrap;padding:.2rem .1rem .8rem;color:var(--soft)}
.bar p{margin:0;overflow-wrap:anywhere;min-width:0}
.list{list-style:none;margin:0;padding:0}.list li+li{border-top:1px solid var(--line)}
.list a{display:grid;grid-template-columns:minmax(0,13rem) minmax(0,1fr) max-content;gap:.1rem 1rem;padding:.6rem 1rem;color:inherit;text-decoration:none;border-left:3px solid transparent}
.list a:hover{background:var(--hover)}.list .unread a{border-left-color:var(--mark)}
.from,.what{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.list b{font-weight:450}.unread .from,.list .unread b{font-weight:650}.clip{width:.95em;height:.95em;vertical-align:-.1em;color:var(--soft)}
.snippet,.list time{color:var(--soft)}.list time{font-variant-numeric:tabular-nums;white-space:nowrap;font-size:.87rem;padding-top:.08rem}
.tag{display:inline-block;background:var(--mark-soft);color:var(--mark);border-radius:1rem;padding:0 .55rem;font-size:.8rem;max-width:100%;overflow:hidden;text-overflow:ellipsis;vertical-align:bottom}
.pages{display:flex;gap:.5rem;justify-content:center;padding:1rem 0}.pages a,.button{border:1px solid var(--line);border-radius:.5rem;padding:.42rem .75rem;background:var(--card);color:inherit;text-decoration:none;font-weight:500}.pages a:hover,.button:hover{background:var(--hover)}
.empty{padding:4.5rem 1.5rem;text-align:center;color:var(--soft)}.empty svg{width:3.5rem;height:3.5rem;opacity:.8}.empty h2{color:var(--text);font-size:1.15rem;margin:.8rem 0 .3rem}.empty p{margin:0 auto;max-width:34rem;overflow-wrap:anywhere}
.head{padding:1.1rem 1.2rem .4rem}.head h1{font-size:1.3rem;line-height:1.3;margin:0 0 .7rem;overflow-wrap:anywhere;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:5;overflow:hidden}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15rem 1.2rem;margin:0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere;max-height:6rem;overflow:auto}
.headers{grid-template-columns:minmax(0,14rem) minmax(0,1fr);padding:1rem 1.2rem;gap:.35rem 1.2rem}.headers dt{overflow-wrap:anywhere}.headers dd{max-height:9rem}
.tabs{display:flex;gap:.2rem;padding:.6rem 1.2rem 0;border-bottom:1px solid var(--line);overflow-x:auto}
.tabs a{padding:.45rem .8rem;color:var(--soft);text-decoration:none;border-bottom:2px solid transparent;white-space:nowrap}.tabs a:hover{color:var(--text)}.tabs a[aria-current]{color:var(--mark);border-bottom-color:var(--mark);font-weight:600}
iframe{display:block;width:100%;height:70vh;border:0;background:#fff}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;padding:1rem 1.2rem;font:.87rem/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.parts{list-style:none;margin:0;padding:.4rem 0}.parts li{display:flex;gap:.9rem;align-items:center;padding:.55rem 1.2rem}.parts li>div{min-width:0;overflow-wrap:anywhere}.parts small{color:var(--soft)}.parts .picture{width:3.2rem;height:3.2rem;flex:none;object-fit:cover;border-radius:.4rem;border:1px solid var(--line);background:#fff}
.actions{display:flex;gap:.6rem;flex-wrap:wrap;align-items:flex-start;padding:1rem 0}.actions summary{list-style:none;cursor:pointer}.actions details[open] summary{margin-bottom:.6rem}.actions summary::-webkit-details-marker{display:none}
.release{display:flex;gap:.5rem;flex-wrap:wrap}
@media(max-width:42rem){main{padding:.7rem}.list a{grid-template-columns:minmax(0,1fr) max-content;padding:.6rem .8rem}.what{grid-column:1/-1;grid-row:2}.head{padding:.9rem .9rem .3rem}.tabs{padding:.5rem .4rem 0;gap:0}.tabs a{padding:.45rem .6rem}pre{padding:.8rem .9rem}.headers{grid-template-columns:minmax(0,1fr);gap:.1rem;padding:.9rem}.headers dd{margin-bottom:.5rem}.parts li{padding:.55rem .9rem}dl{gap:.15rem .8rem}.release,.release input,.actions details[open]{width:100%}}
)";

constexpr std::string_view kLogo =
    "<svg viewBox=\"0 0 32 32\" aria-hidden=\"true\"><rect width=\"32\" height=\"32\" rx=\"8\" "
    "fill=\"#2f5bea\"/><path d=\"M7 10.5h18v12H7z\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2\" "
    "stroke-linejoin=\"round\"/><path d=\"m7.5 11 8.5 6.5 8.5-6.5\" fill=\"none\" stroke=\"#fff\" "
    "stroke-width=\"2\" stroke-linejoin=\"round\"/></svg>";

constexpr std::string_view kClip =
    "<svg class=\"clip\" viewBox=\"0 0 16 16\" role=\"img\" aria-label=\"has attachments\"><path d=\"m13.5 "
    "7.5-5.8 "
    "5.8a3.4 3.4 0 0 1-4.8-4.8l6.3-6.3a2.3 2.3 0 0 1 3.2 3.2l-6.1 6.1a1.1 1.1 0 0 1-1.6-1.6l5.3-5.3\" "
    "fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.4\" stroke-linecap=\"round\"/></svg> ";

std::string shown_addresses(const std::vector<mime::Address>& addresses, const std::string& fallback,
                            bool whole) {
  if (addresses.empty()) return fallback.empty() ? "<>" : fallback;
  std::string text;
  for (const auto& address : addresses) {
    if (!text.empty()) text += ", ";
    if (address.name.empty())
      text += address.address;
    else
      text += whole ? fmt::format("{} <{}>", address.name, address.address) : address.name;
  }
  return text;
}

std::string shown_subject(const mime::Message& parsed) {
  return escape_html(parsed.subject.empty() ? "(no subject)" : parsed.subject);
}

// "Wed, 31 Jul 2019 11:22:56 UTC"
std::string whole_time(Nanoseconds created) { return mail_date(created).substr(0, 26) + "UTC"; }

// In UTC, too: "14:03:59" of today's, "31 Jul 14:03" of others.
std::string short_time(Nanoseconds created, Nanoseconds now) {
  const auto date = mail_date(created);  // "Wed, 31 Jul 2019 11:22:56 +0000"
  if (partition_of(created, Granularity::day) == partition_of(now, Granularity::day))
    return date.substr(17, 8);
  return date.substr(5, 6) + " " + date.substr(17, 5);
}

std::string shown_size(size_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string shown_tags(const Message& message) {
  std::string tags;
  for (const auto& tag : message.tags)
    tags += fmt::format(" <span class=\"tag\">{}</span>", escape_html(mime::to_valid_utf8(tag)));
  return tags;
}

void append_parts(std::string& html, const std::string& api, const mime::Message& parsed) {
  html += "<ul class=\"parts\">";
  for (size_t i = 0; i < parsed.parts.size(); ++i) {
    const auto& part = parsed.parts[i];
    const auto link = fmt::format("{}/parts/{}", api, i);
    html += "<li>";
    if (is_picture(part.content_type))
      html += fmt::format("<img class=\"picture\" src=\"{}\" alt=\"\" loading=\"lazy\">", link);
    html += fmt::format("<div><a href=\"{}\">{}</a><br><small>{} · {}</small></div></li>", link,
                        escape_html(part.filename.empty() ? fmt::format("Part {}", i) : part.filename),
                        escape_html(part.content_type), shown_size(part.content().size()));
  }
  html += "</ul>";
}

void append_headers(std::string& html, const mime::Message& parsed) {
  html += "<dl class=\"headers\">";
  for (const auto& header : parsed.headers)
    html += fmt::format("<dt>{}</dt><dd>{}</dd>", escape_html(header.name), escape_html(header.value));
  html += "</dl>";
}

// Subject, who sent it to whom, when.
void append_head(std::string& html, const Message& message, const mime::Message& parsed) {
  html += fmt::format("<div class=\"head\"><h1>{}</h1><dl>", shown_subject(parsed));
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>", name, escape_html(value));
  };
  const auto delivered = mime::to_valid_utf8(fmt::format("{}", fmt::join(message.to, ", ")));
  const auto to = shown_addresses(parsed.to, delivered, true);
  line("From", shown_addresses(parsed.from, mime::to_valid_utf8(message.from), true));
  line("To", to);
  if (!parsed.cc.empty()) line("Cc", shown_addresses(parsed.cc, "", true));
  if (delivered != to) line("Delivered to", delivered);
  line("Received", whole_time(message.created));
  if (!message.tags.empty()) html += fmt::format("<dt>Tags</dt><dd>{}</dd>", shown_tags(message));
  html += "</dl></div>";
}

void append_tabs(std::string& html, const std::string& path, bool has_html, std::string_view shown) {
  struct Tab {
    std::string_view name;
    std::string_view label;
  };
  static constexpr std::array kTabs = {Tab{"html", "HTML"}, Tab{"text", "Text"}, Tab{"source", "Source"},
                                       Tab{"headers", "Headers"}, Tab{"parts", "Parts"}};
  html += "<nav class=\"tabs\" aria-label=\"Views of the message\">";
  for (const auto& [name, label] : kTabs)
    if (name != "html" || has_html)
      html += fmt::format("<a href=\"{}?tab={}\"{}>{}</a>", path, name,
                          shown == name ? " aria-current=\"page\"" : "", label);
  html += "</nav>";
}

void append_actions(std::string& html, const std::string& path, const std::string& api) {
  html += fmt::format(
      "<div class=\"actions\"><a class=\"button\" href=\"{}/raw\">Download</a>"
      "<form method=\"post\" action=\"{}/delete\"><button class=\"danger\">Delete</button></form>"
      "<details><summary class=\"button\">Release…</summary>"
      "<form method=\"post\" action=\"{}/release\" class=\"release\"><input name=\"email\" "
      "placeholder=\"someone@example.com\" aria-label=\"Release to\" required><input name=\"host\" "
      "placeholder=\"SMTP host\" aria-label=\"SMTP host\" required><input name=\"port\" value=\"25\" "
      "size=\"5\" inputmode=\"numeric\" aria-label=\"Port\"><button class=\"main\">Release</button></form>"
      "</details></div>",
      api, path, path);
}

}  // namespace

std::string message_path(const std::string& base, const std::string& id) {
  return fmt::format("{}/view/{}", base, net::percent_encode(url_spelling(id)));
}

std::string begin_page(const std::string& base, std::string_view title, std::string_view query) {
  return fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{} · Tabella mail</title><style>{}</style>"
      "<header class=\"top\"><div><a class=\"brand\" href=\"{}/\">{}Tabella mail</a>"
      "<form class=\"search\" action=\"{}/\" role=\"search\"><input type=\"search\" name=\"q\" value=\"{}\" "
      "placeholder=\"Search: words, from:, subject:, has:attachment, after:2h …\" aria-label=\"Search\">"
      "<button>Search</button></form></div></header><main>",
      escape_html(title), kStyle, base, kLogo, base, escape_html(query));
}

void append_notice(std::string& html, std::string_view title, std::string_view text) {
  html += fmt::format("<div class=\"card empty\">{}<h2>{}</h2><p>{}</p></div>", kLogo, escape_html(title),
                      escape_html(text));
}

void begin_list(std::string& html, const std::string& base, const ListPage& page) {
  if (page.total == 0 && page.query.empty())
    return append_notice(html, "No mail yet",
                         "What is sent to the SMTP port shows up here. Send something, and reload.");
  if (page.total == 0) return append_notice(html, "Nothing matches", page.query);
  html +=
      fmt::format("<div class=\"bar\"><p>{} {}{}</p>", page.total, page.total == 1 ? "message" : "messages",
                  page.query.empty() ? "" : fmt::format(" for “{}”", escape_html(page.query)));
  if (page.query.empty())
    html += fmt::format(
        "<form method=\"post\" action=\"{}/delete-all\"><button class=\"danger\">Delete all</button></form>",
        base);
  html += "</div><ol class=\"card list\">";
}

void append_row(std::string& html, const std::string& base, const Message& message, Nanoseconds now) {
  const auto parsed = mime::parse(message.raw);
  const auto text = snippet(parsed);
  html += fmt::format(
      "<li{}><a href=\"{}\"><span class=\"from\">{}</span><span class=\"what\">{}<b>{}</b>{} <span "
      "class=\"snippet\">{}</span></span><time datetime=\"{}\" title=\"{}\">{}</time></a></li>",
      message.read ? "" : " class=\"unread\"", message_path(base, message.id),
      escape_html(shown_addresses(parsed.from, mime::to_valid_utf8(message.from), false)),
      parsed.attachments() > 0 ? kClip : "", shown_subject(parsed), shown_tags(message),
      escape_html(text.empty() ? "" : "— " + text), time_text(message.created), whole_time(message.created),
      short_time(message.created, now));
}

void end_list(std::string& html, const std::string& base, const ListPage& page) {
  if (page.total == 0) return;
  html += "</ol><nav class=\"pages\" aria-label=\"Pages\">";
  const auto link = [&](size_t start, std::string_view label) {
    html += fmt::format("<a href=\"{}/?start={}{}\">{}</a>", base, start,
                        page.query.empty() ? "" : "&amp;q=" + net::percent_encode(page.query), label);
  };
  if (page.start > 0) link(page.start > page.limit ? page.start - page.limit : 0, "← Newer");
  if (page.start + page.count < page.total) link(page.start + page.limit, "Older →");
  html += "</nav>";
}

std::string message_page(const std::string& base, const Message& message, std::string tab) {
  const auto parsed = mime::parse(message.raw);
  const auto path = message_path(base, message.id);
  const auto api = fmt::format("{}/api/v3/messages/{}", base, net::percent_encode(url_spelling(message.id)));
  if (tab.empty()) tab = parsed.html() ? "html" : "text";
  auto html = begin_page(base, parsed.subject, "");
  html += "<article class=\"card\">";
  append_head(html, message, parsed);
  append_tabs(html, path, parsed.html() != nullptr, tab);
  if (tab == "html" && parsed.html())
    html += fmt::format(
        "<iframe sandbox=\"allow-popups allow-popups-to-escape-sandbox\" referrerpolicy=\"no-referrer\" "
        "title=\"The message\" src=\"{}/html\"></iframe>",
        api);
  else if (tab == "source")
    html +=
        fmt::format("<pre>{}</pre>",
                    escape_html(mime::to_valid_utf8(std::string_view(message.raw).substr(0, kShownSource))));
  else if (tab == "headers")
    append_headers(html, parsed);
  else if (tab == "parts")
    append_parts(html, api, parsed);
  else
    html += fmt::format("<pre>{}</pre>", escape_html(shown_text(parsed, kShownSource)));
  html += "</article>";
  append_actions(html, path, api);
  return html;
}

}  // namespace tabella::mail
