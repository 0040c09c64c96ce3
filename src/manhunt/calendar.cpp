#include "manhunt/calendar.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tabella::manhunt {
namespace {

constexpr size_t kMostOctets = 75;  // of a line

std::string calendar_text(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    if (c == '\\' || c == ';' || c == ',') escaped.push_back('\\');
    escaped.push_back(c);
  }
  return escaped;
}

std::string utc_stamp(TimePoint time) {
  const auto local = TimeZone::utc().local(time);
  auto text = local_time_text(local);
  std::erase(text, '-');
  std::erase(text, ':');
  return text + "Z";
}

// Folded, and never within a character.
void append_line(std::string& out, std::string_view line) {
  size_t room = kMostOctets;
  while (line.size() > room) {
    auto cut = room;
    while (cut > 1 && (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80) --cut;
    out.append(line.substr(0, cut)).append("\r\n ");
    line.remove_prefix(cut);
    room = kMostOctets - 1;
  }
  out.append(line).append("\r\n");
}

}  // namespace

Checked<std::string> calendar_of(const OnCallSchedule& schedule, std::string_view id,
                                 const std::map<std::string, std::string>& names, TimePoint from,
                                 TimePoint to) {
  const auto title = schedule.title.empty() ? std::string(id) : schedule.title;
  std::string out;
  for (const auto* line :
       {"BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Tabella//Manhunt//EN", "CALSCALE:GREGORIAN",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H", "X-PUBLISHED-TTL:PT1H"})
    append_line(out, line);
  append_line(out, "X-WR-CALNAME:" + calendar_text(title));
  TABELLA_ASSIGN(const auto all, shifts(schedule, from, to));
  for (const auto& shift : all) {
    const auto name = names.find(shift.contact);
    append_line(out, "BEGIN:VEVENT");
    // One that began before the feed does is the same event tomorrow, when the feed begins later.
    append_line(out, fmt::format("UID:{}-{}-{}@tabella", id,
                                 shift.from == from ? "begun-before" : utc_stamp(shift.from), shift.contact));
    append_line(out, "DTSTAMP:" + utc_stamp(shift.from));
    append_line(out, "DTSTART:" + utc_stamp(shift.from));
    append_line(out, "DTEND:" + utc_stamp(shift.to));
    append_line(
        out, fmt::format("SUMMARY:{} ({})", calendar_text(name == names.end() ? shift.contact : name->second),
                         calendar_text(title)));
    append_line(out, "TRANSP:TRANSPARENT");
    append_line(out, "END:VEVENT");
  }
  append_line(out, "END:VCALENDAR");
  return out;
}

}  // namespace tabella::manhunt
