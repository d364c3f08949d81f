#include "algorithms.h"

#include <ctype.h>

#include <sstream>

namespace {

std::vector<std::string> names_of(Kind kind, bool symmetric) {
  std::vector<std::string> names = {"RING_LL", "RING_LL128", "RING_SIMPLE"};
  auto add = [&](std::initializer_list<const char *> more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (kind == Kind::ALL_REDUCE) {
    add({"TREE_LL", "TREE_LL128", "TREE_SIMPLE", "COLLNET_DIRECT_SIMPLE", "COLLNET_CHAIN_SIMPLE",
         "NVLS_SIMPLE", "NVLSTREE_SIMPLE"});
    if (symmetric) {
      add({"SYMK_AGXLL_R", "SYMK_AGXLLMC_R", "SYMK_RSXLD_AGXST", "SYMK_RSXTMALD_AGXTMAST",
           "SYMK_RSXLDMC_AGXSTMC"});
    }
  }
  if (kind == Kind::ALL_GATHER || kind == Kind::REDUCE_SCATTER) {
    add({"COLLNET_DIRECT_SIMPLE", "NVLS_SIMPLE", "PAT_SIMPLE"});
    if (symmetric) add({"SYMK_"});
  }
  return names;
}

}  // namespace

bool can_choose(const std::string &words, Kind kind, bool symmetric) {
  std::istringstream list(words);
  std::string word;
  while (std::getline(list, word, ',')) {
    for (char &c : word) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
    bool others = word.rfind('^', 0) == 0;
    if (others) word.erase(0, 1);
    for (auto &name : names_of(kind, symmetric)) {
      // Of symmetric kernels that move, only the family is known here.
      bool named = name.rfind(word, 0) == 0 || (name == "SYMK_" && word.rfind(name, 0) == 0);
      if (named != others) return true;
    }
  }
  return words.empty();
}
