#include "mime/html.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "mime/html_tokens.h"

namespace tabella::mime {
namespace {

using Kind = HtmlToken::Kind;

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& sorted, std::string_view name) {
  return std::ranges::binary_search(sorted, name);
}

// Elements that go with all that is in them.
constexpr std::array<std::string_view, 15> kDropped = {"applet", "audio",   "canvas",   "frameset", "iframe",
                                                       "math",   "noembed", "noframes", "noscript", "object",
                                                       "script", "svg",     "template", "title",    "video"};
static_assert(std::ranges::is_sorted(kDropped));

constexpr std::array<std::string_view, 73> kAllowed = {
    "a",          "abbr",       "address", "area",    "article", "aside",  "b",    "bdi",     "bdo",
    "big",        "blockquote", "body",    "br",      "caption", "center", "cite", "code",    "col",
    "colgroup",   "dd",         "del",     "details", "dfn",     "div",    "dl",   "dt",      "em",
    "figcaption", "figure",     "font",    "footer",  "h1",      "h2",     "h3",   "h4",      "h5",
    "h6",         "header",     "hr",      "i",       "img",     "ins",    "kbd",  "label",   "li",
    "main",       "map",        "mark",    "nav",     "ol",      "p",      "pre",  "q",       "s",
    "samp",       "section",    "small",   "span",    "strike",  "strong", "sub",  "summary", "sup",
    "table",      "tbody",      "td",      "tfoot",   "th",      "thead",  "tr",   "tt",      "u",
    "ul"};
static_assert(std::ranges::is_sorted(kAllowed));

// Names that elements are known by (id, name, for, headers) are as the message has them: its styles and
// anchors refer to them, and there is no script that could take an element for something else by its name.
constexpr std::array<std::string_view, 37> kAttributes = {
    "align",  "alt",     "bgcolor", "border", "cellpadding", "cellspacing", "class",    "color",
    "cols",   "colspan", "coords",  "dir",    "face",        "for",         "headers",  "height",
    "hspace", "id",      "lang",    "name",   "noshade",     "nowrap",      "reversed", "role",
    "rows",   "rowspan", "scope",   "shape",  "size",        "span",        "start",    "title",
    "usemap", "valign",  "value",   "vspace", "width"};
static_assert(std::ranges::is_sorted(kAttributes));

// Without comments and escapes, behind which things hide.
std::string plain_css(std::string_view css) {
  std::string out;
  for (size_t i = 0; i < css.size(); ++i) {
    if (css.substr(i, 2) == "/*") {
      const auto end = css.find("*/", i + 2);
      if (end == std::string_view::npos) break;
      i = end + 1;
    } else if (css[i] != '\\' && css[i] != '<' && css[i] != '\0') {
      out.push_back(css[i]);
    }
  }
  return out;
}

// Nothing in it loads anything: what would is made to say nothing.
std::string clean_css(std::string_view css) {
  static constexpr std::array<std::string_view, 9> kHarmful = {"url(",         "image-set(",  "@import",
                                                               "@font-face",   "expression(", "behavior",
                                                               "-moz-binding", "javascript:", "src("};
  const auto plain = plain_css(css);
  const auto small = lower(plain);
  std::string out;
  for (size_t i = 0; i < plain.size();) {
    const auto rest = std::string_view(small).substr(i);
    const auto* harm = std::ranges::find_if(kHarmful, [&](auto word) { return rest.starts_with(word); });
    if (harm == kHarmful.end()) {
      out.push_back(plain[i++]);
    } else {
      out.append(harm->ends_with('(') ? "none(" : "none");
      i += harm->size();
    }
  }
  return out;
}

// Where a link may lead; empty: nowhere.
std::string clean_link(std::string_view url) {
  std::string plain;
  for (const char c : url)
    if (static_cast<unsigned char>(c) > 0x20 && c != 0x7f) plain.push_back(c);
  const auto small = lower(plain);
  for (const std::string_view scheme : {"http://", "https://", "mailto:", "tel:", "#"})
    if (small.starts_with(scheme)) return plain;
  return {};
}

// Pictures come from the message itself.
std::string clean_source(std::string_view url, const PartUrl& part_url) {
  url = trim(url);
  const auto small = lower(url.substr(0, 32));
  if (small.starts_with("cid:")) return part_url(url.substr(4));
  for (const std::string_view type :
       {"data:image/png;", "data:image/gif;", "data:image/jpeg;", "data:image/jpg;", "data:image/webp;"})
    if (small.starts_with(type)) return std::string(url);
  return {};
}

void append_attribute(std::string& out, std::string_view name, std::string_view value) {
  out.append(" ").append(name).append("=\"").append(escape_html(value)).append("\"");
}

void append_tag(std::string& out, const HtmlToken& token, const PartUrl& part_url) {
  out.append("<").append(token.name);
  for (const auto& [name, value] : token.attributes) {
    if (is_one_of(kAttributes, name)) {
      append_attribute(out, name, value);
    } else if (name == "style") {
      append_attribute(out, name, clean_css(value));
    } else if (name == "href" && (token.name == "a" || token.name == "area")) {
      if (const auto link = clean_link(value); !link.empty()) {
        append_attribute(out, "href", link);
        // Within the message one stays where one is.
        if (!link.starts_with('#')) out.append(" target=\"_blank\" rel=\"noopener noreferrer nofollow\"");
      }
    } else if (name == "src" && token.name == "img") {
      if (const auto source = clean_source(value, part_url); !source.empty())
        append_attribute(out, "src", source);
      else
        append_attribute(out, "data-not-loaded", value);
    }
  }
  out.append(">");
}

void append_style(std::string& out, const HtmlToken& token, std::string_view css) {
  out.append("<style");
  for (const auto& [name, value] : token.attributes)
    if (name == "media") append_attribute(out, name, value);
  out.append(">").append(clean_css(css)).append("</style>");
}

// Past the end of an element that is dropped, however often it stands in itself.
void skip_element(HtmlTokens& tokens, const std::string& name) {
  if (name == "script" || name == "iframe" || name == "title" || name == "noembed" || name == "noframes") {
    tokens.raw_text(name);
    return;
  }
  HtmlToken token;
  for (size_t depth = 1; depth > 0 && tokens.next(token);) {
    if (token.kind == Kind::start && token.name == "script")
      tokens.raw_text(token.name);
    else if (token.name == name)
      token.kind == Kind::start ? ++depth : --depth;
  }
}

constexpr std::array<std::string_view, 24> kBlocks = {
    "address", "article", "blockquote", "br", "caption", "dd", "div", "dt",      "h1",    "h2", "h3", "h4",
    "h5",      "h6",      "hr",         "li", "ol",      "p",  "pre", "section", "table", "td", "th", "tr"};
static_assert(std::ranges::is_sorted(kBlocks));

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out.append("&amp;"); break;
      case '<': out.append("&lt;"); break;
      case '>': out.append("&gt;"); break;
      case '"': out.append("&quot;"); break;
      case '\'': out.append("&#39;"); break;
      case '\0': out.append("\xEF\xBF\xBD"); break;
      default: out.push_back(c);
    }
  }
  return out;
}

std::string html_to_text(std::string_view html) {
  std::string out;
  HtmlTokens tokens(html);
  HtmlToken token;
  while (tokens.next(token)) {
    if (token.kind == Kind::text) {
      out.append(decode_references(token.text));
    } else if (token.kind == Kind::start && (token.name == "script" || token.name == "style")) {
      tokens.raw_text(token.name);
    } else if (token.kind == Kind::start || token.kind == Kind::end) {
      if (is_one_of(kBlocks, token.name)) out.push_back(' ');
      for (const auto& [name, value] : token.attributes)
        if (name == "href" || name == "alt") out.append(" ").append(value).append(" ");
    }
  }
  return out;
}

std::string clean_html(std::string_view html, const PartUrl& part_url) {
  std::string out = "<!doctype html><meta charset=\"utf-8\">";
  HtmlTokens tokens(html);
  HtmlToken token;
  while (tokens.next(token)) {
    switch (token.kind) {
      case Kind::other: break;
      case Kind::text:
        for (const char c : token.text) {
          if (c == '<')
            out.append("&lt;");
          else if (c != '\0')
            out.push_back(c);
        }
        break;
      case Kind::end:
        if (is_one_of(kAllowed, token.name)) out.append("</").append(token.name).append(">");
        break;
      case Kind::start:
        if (token.name == "style") {
          append_style(out, token, tokens.raw_text("style"));
        } else if (is_one_of(kDropped, token.name)) {
          skip_element(tokens, token.name);
        } else if (is_one_of(kAllowed, token.name)) {
          append_tag(out, token, part_url);
        }
        break;
    }
  }
  return out;
}

}  // namespace tabella::mime
