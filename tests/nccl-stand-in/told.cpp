#include "told.h"

#include <string.h>

#include <algorithm>
#include <mutex>

#include "control.h"

namespace {

// Older lines are forgotten.
const size_t ROOM = 1 << 20;

std::mutex told_lock;
std::string &lines = *new std::string;
std::string &refusal = *new std::string;

}  // namespace

void tell(const std::string &line) {
  std::lock_guard<std::mutex> guard(told_lock);
  lines += line + "\n";
  if (lines.size() > ROOM) lines.erase(0, lines.find('\n', lines.size() - ROOM) + 1);
}

Status refuse(Status status, const std::string &why) {
  std::lock_guard<std::mutex> guard(told_lock);
  refusal = why;
  return status;
}

std::string last_refusal() {
  std::lock_guard<std::mutex> guard(told_lock);
  return refusal;
}

EXPORT size_t crossover_stand_in_told(char *text, size_t room) {
  std::lock_guard<std::mutex> guard(told_lock);
  size_t whole = lines.size();
  if (room == 0) return whole;
  size_t part = std::min(whole, room - 1);
  memcpy(text, lines.data(), part);
  text[part] = 0;
  if (part == whole) lines.clear();
  return whole;
}
