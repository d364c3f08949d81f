// The kernels and the emulator as a program of its own: ThreadSanitizer wants all of a process.
#include <stdio.h>

#include <vector>

#include "../emulator.h"

int main(int count, char **arguments) {
  int worst = 0;
  for (int at = 1; at < count; ++at) {
    FILE *file = fopen(arguments[at], "rb");
    if (file == nullptr) {
      fprintf(stderr, "%s: cannot be read\n", arguments[at]);
      return 3;
    }
    std::vector<uint8_t> scenario;
    uint8_t piece[4096];
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
      scenario.insert(scenario.end(), piece, piece + got);
    fclose(file);
    char report[4096] = "";
    const int verdict = emulator_play(scenario.data(), scenario.size(), report, sizeof report);
    if (verdict != 0) fprintf(stderr, "%s: %s", arguments[at], report);
    if (verdict > worst) worst = verdict;
  }
  return worst;
}
