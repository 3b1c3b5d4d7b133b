// The least work that a scheduler of a bag can do for an ask: to measure what asking costs.
//
//     g++ -O2 -std=c++17 -o noop noop.cpp && dormouse run j60 --scheduler ./noop
//
// It launches one VM of the first type that is sold on demand, and starts the tasks there in their
// order. It parses no line: it looks in each for the words that it needs.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <string>

using std::string;

static size_t count(const string& text, const string& word) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(word, at)) != string::npos; at += word.size()) ++found;
    return found;
}

// Where the value of a key begins, at or after a place.
static size_t value(const string& text, const string& key, size_t from) {
    size_t at = text.find('"' + key + "\":", from);
    return at == string::npos ? at : at + key.size() + 3;
}

int main() {
    std::ios::sync_with_stdio(false);
    string line;
    if (!std::getline(std::cin, line)) return 1;
    // Each type has its name, its vCPUs and its price on demand, null if it is not sold, in this order.
    size_t name = value(line, "name", 0), price = value(line, "on_demand", name);
    while (price != string::npos && !std::isdigit(line[price])) {
        name = value(line, "name", price);
        price = value(line, "on_demand", name);
    }
    if (price == string::npos) return 1;
    const string kind = line.substr(name, line.find('"', name + 1) + 1 - name);
    const size_t vcpus = std::stoul(line.substr(value(line, "vcpus", name)));
    const size_t tasks = count(line, "\"runtime\":");
    size_t next = 0;

    std::cout << R"({"hello":{"protocol":1,"hears":["begin","vm-ready","task-finished"]}})" << std::endl;
    while (std::getline(std::cin, line)) {
        const bool ready = line.find("\"vm-ready\"") != string::npos;
        const size_t free = ready ? vcpus : count(line, "\"task-finished\"");
        string decisions;
        if (line.find("\"begin\"") != string::npos) {
            decisions = "{\"decision\":\"launch\",\"vm\":0,\"kind\":" + kind + ",\"market\":\"on-demand\"}";
        }
        for (const size_t end = std::min(tasks, next + free); next < end; ++next) {
            if (!decisions.empty()) decisions += ',';
            decisions += "{\"decision\":\"start\",\"task\":" + std::to_string(next) + ",\"vm\":0}";
        }
        std::cout << "{\"decisions\":[" << decisions << "]}" << std::endl;
    }
}
