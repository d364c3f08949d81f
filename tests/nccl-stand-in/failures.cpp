#include "failures.h"

#include <stdlib.h>

#include <mutex>
#include <sstream>

#include "control.h"

namespace {

const std::map<std::string, bool Failures::*> SWITCHES = {
    {"init=hang", &Failures::init_hangs},         {"init=fail", &Failures::init_fails},
    {"finalize=hang", &Failures::finalize_hangs}, {"finalize=held", &Failures::finalize_is_held}, {"window=fail", &Failures::window_fails},
    {"abort=slow", &Failures::abort_is_slow},     {"abort=hang", &Failures::abort_hangs},
    {"window=null", &Failures::window_is_null},   {"memory=fail", &Failures::memory_fails},
    {"id=hang", &Failures::id_hangs},             {"query=slow", &Failures::query_is_slow},
    {"abort=heard", &Failures::abort_is_heard},   {"deregister=hang", &Failures::deregister_hangs},
};

const std::map<std::string, CallFailure> OF_CALLS = {
    {"fail", CallFailure::FAIL}, {"hang", CallFailure::HANG},
    {"die", CallFailure::DIE},   {"async-error", CallFailure::ASYNC_ERROR},
    {"wrong", CallFailure::WRONG}, {"inside", CallFailure::INSIDE},
    {"slow", CallFailure::SLOW},
};

std::mutex words_lock;
bool is_set = false;
std::string &said = *new std::string;

std::string text() {
  std::lock_guard<std::mutex> guard(words_lock);
  const char *variable = getenv("CROSSOVER_STAND_IN");
  return is_set ? said : variable != nullptr ? variable : "";
}

bool is_number(const std::string &word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

// One clause; returns the word that it cannot read, or nothing.
std::string read_clause(const std::string &clause, int rank, Failures *failures) {
  std::istringstream words(clause);
  std::string word;
  Failures read = *failures;
  bool ours = true;
  while (words >> word) {
    auto found = SWITCHES.find(word);
    if (found != SWITCHES.end()) {
      read.*(found->second) = true;
    } else if (word.rfind("rank=", 0) == 0 && is_number(word.substr(5))) {
      ours = ours && std::stoi(word.substr(5)) == rank;
    } else if (word.rfind("call=", 0) == 0 && is_number(word.substr(5))) {
      std::string how;
      words >> how;
      auto known = OF_CALLS.find(how);
      if (known == OF_CALLS.end()) return word + " " + how;
      read.calls[std::stoull(word.substr(5))] = known->second;
    } else {
      return word;
    }
  }
  if (ours) *failures = read;
  return "";
}

}  // namespace

CallFailure Failures::of_call(uint64_t number) const {
  auto found = calls.find(number);
  return found == calls.end() ? CallFailure::NONE : found->second;
}

bool read_failures(int rank, Failures *failures, std::string *why) {
  std::istringstream clauses(text());
  std::string clause;
  while (std::getline(clauses, clause, ';')) {
    std::string word = read_clause(clause, rank, failures);
    if (word.empty()) continue;
    *why = "the stand-in knows no failure \"" + word + "\" (tests/nccl-stand-in/failures.h)";
    return false;
  }
  return true;
}

EXPORT void crossover_stand_in_failures(const char *text) {
  std::lock_guard<std::mutex> guard(words_lock);
  is_set = text != nullptr;
  said = is_set ? text : "";
}
