// Timelines as drawings: text for terminals, SVG for browsers.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/xml.h"
#include "manhunt/timeline.h"

namespace tabella::manhunt {
namespace {

constexpr int kLabelWidth = 240;
constexpr int kLineWidth = 640;
constexpr int kRowHeight = 26;
constexpr int kHeadHeight = 64;

std::string offset_text(TimePoint at, TimePoint begin) {
  using namespace std::chrono;
  const auto length = std::max(duration_cast<milliseconds>(at - begin), milliseconds{0});
  if (length < seconds(60)) return fmt::format("+{:.1f}s", static_cast<double>(length.count()) / 1000);
  const auto whole = duration_cast<seconds>(length).count();
  if (whole < 3600) return fmt::format("+{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("+{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string state_of(const TimelineEntry& entry) {
  if (!entry.made) return "planned";
  if (!entry.made->answer.empty()) return entry.made->answer == "accept" ? "accepted" : "declined";
  return std::string(name_of(entry.made->state));
}

// Where it does not come by itself.
std::string bundle_text(const TimelineEntry& entry, TimePoint begin) {
  if (!entry.bundled) return {};
  return fmt::format(" (beyond its limit: with others at {})", offset_text(*entry.bundled, begin));
}

std::string_view mark_of(std::string_view state) {
  if (state == "planned") return "○";
  if (state == "sending" || state == "bundled") return "◐";
  if (state == "failed" || state == "declined") return "✗";
  if (state == "skipped") return "–";
  if (state == "unknown") return "?";
  return state == "accepted" ? "✔" : "●";
}

std::string_view colour_of(std::string_view state) {
  if (state == "planned") return "#ffffff";
  if (state == "failed" || state == "declined") return "#c0392b";
  if (state == "unknown" || state == "skipped") return "#b7791f";
  return state == "accepted" ? "#1e7e46" : "#2456a6";
}

std::string end_line(const Timeline& timeline, const Search& search) {
  if (search.status == Status::active)
    return fmt::format("{:>10}  fails, if nobody answers", offset_text(timeline.ends, timeline.begins));
  return fmt::format("{:>10}  {} ({})", offset_text(time_at(search.ended), timeline.begins),
                     name_of(search.status), printable(search.resolution.how));
}

}  // namespace

std::string draw_text(const Timeline& timeline, const Search& search, TimePoint now) {
  auto out = fmt::format("{}  {}\n", time_text(timeline.begins), printable(search.id));
  bool now_shown = search.status != Status::active || now < timeline.begins;
  for (const auto& entry : timeline.entries) {
    if (!now_shown && !entry.made) {
      out += fmt::format("{:>10}  ── now ──\n", offset_text(now, timeline.begins));
      now_shown = true;
    }
    const auto state = state_of(entry);
    out += fmt::format("{:>10}  {} {:<8} {:<8} {} {}{}{}\n", offset_text(entry.at, timeline.begins),
                       mark_of(state), state, name_of(entry.kind), printable(entry.contact_name),
                       printable(entry.destination),
                       entry.schedule.empty() ? "" : fmt::format(" (on call: {})", printable(entry.schedule)),
                       bundle_text(entry, timeline.begins));
  }
  if (!now_shown) out += fmt::format("{:>10}  ── now ──\n", offset_text(now, timeline.begins));
  return out + end_line(timeline, search) + "\n";
}

std::string draw_svg(const Timeline& timeline, const Search& search, TimePoint now) {
  const bool active = search.status == Status::active;
  auto last = active ? timeline.ends : time_at(search.ended);
  for (const auto& entry : timeline.entries)
    last = std::max({last, entry.at, entry.bundled.value_or(entry.at)});
  const auto span = std::max<double>(1, static_cast<double>((last - timeline.begins).count()));
  const auto x_of = [&](TimePoint at) {
    const auto part = static_cast<double>((at - timeline.begins).count()) / span;
    return kLabelWidth + std::clamp(part, 0.0, 1.0) * kLineWidth;
  };
  const auto rows = static_cast<int>(timeline.entries.size());
  const int width = kLabelWidth + kLineWidth + 60;
  const int height = kHeadHeight + rows * kRowHeight + 40;
  auto svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "role=\"img\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"13\"><title>Search {2}</title>"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fbfbf9\"/>"
      "<text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"600\" fill=\"#222\">{2}</text>"
      "<text x=\"16\" y=\"46\" fill=\"#666\">{3}, from {4}</text>",
      width, height, xml_text(search.id), name_of(search.status), time_text(timeline.begins));
  int row = 0;
  for (const auto& entry : timeline.entries) {
    const auto y = kHeadHeight + row++ * kRowHeight + kRowHeight / 2;
    const auto state = state_of(entry);
    const auto x = x_of(entry.at);
    svg += fmt::format(
        "<text x=\"16\" y=\"{}\" fill=\"#222\">{} · {}</text>"
        "<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"#ddd\"/>"
        "<circle cx=\"{:.1f}\" cy=\"{}\" r=\"6\" fill=\"{}\" stroke=\"#2456a6\" "
        "stroke-width=\"1.5\"><title>{} {} "
        "{}</title></circle>",
        y + 4, xml_text(entry.contact_name), name_of(entry.kind), kLabelWidth, kLabelWidth + kLineWidth, y, y,
        x, y, colour_of(state), xml_text(state), xml_text(entry.destination), time_text(entry.at));
    const bool left = x > kLabelWidth + kLineWidth - 120;
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\" fill=\"#555\" font-size=\"11\">{} {}{}</text>",
        left ? x - 12 : x + 12, y + 4, left ? "end" : "start", offset_text(entry.at, timeline.begins),
        xml_text(state), bundle_text(entry, timeline.begins));
  }
  const auto bottom = kHeadHeight + rows * kRowHeight;
  const auto upright = [&](TimePoint at, std::string_view colour, std::string_view label) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"{3}\" stroke-dasharray=\"4 3\"/>"
        "<text x=\"{0:.1f}\" y=\"{4}\" text-anchor=\"middle\" fill=\"{3}\" font-size=\"11\">{5}</text>",
        x_of(at), kHeadHeight - 6, bottom + 6, colour, bottom + 22, xml_text(label));
  };
  if (active && now > timeline.begins && now < timeline.ends) upright(now, "#c0392b", "now");
  upright(active ? timeline.ends : time_at(search.ended), "#444", active ? "fails" : name_of(search.status));
  return svg + "</svg>\n";
}

}  // namespace tabella::manhunt
