// The scheduler of plain.py in C++: JSON lines in, JSON lines out, and no library but the standard's.
//
//     g++ -O2 -std=c++17 -o bag bag.cpp && dormouse run j60-sc2 --scheduler ./bag

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

using std::string;
using std::vector;

// A value as dormouse writes it: the numbers that are read here are whole.
struct Json {
    char kind = 0;  // the character that it begins with
    long long number = 0;
    string text;
    vector<string> keys;  // of an object, in the order of its items
    vector<Json> items;

    const Json* find(const string& key) const {
        const auto at = std::find(keys.begin(), keys.end(), key);
        return at == keys.end() ? nullptr : &items[at - keys.begin()];
    }
    const Json& operator[](const string& key) const {
        if (const Json* item = find(key)) return *item;
        std::cerr << "there is no '" << key << "'\n";
        std::exit(1);
    }
    bool is_null() const { return kind == 'n'; }
};

// Reads the value at a place of a line, and moves the place behind it.
Json read(const char*& at) {
    Json json;
    json.kind = *at;
    if (*at == '"') {
        while (*++at != '"') {
            if (*at == '\\') ++at;  // escapes are in names for people only
            json.text += *at;
        }
        ++at;
    } else if (*at == '{' || *at == '[') {
        for (++at; *at != '}' && *at != ']'; at += *at == ',') {
            if (json.kind == '{') {
                json.keys.push_back(read(at).text);
                ++at;  // the colon
            }
            json.items.push_back(read(at));
        }
        ++at;
    } else {
        json.number = std::strtoll(at, nullptr, 10);
        while (!std::strchr(",}]", *at)) ++at;
    }
    return json;
}

struct Type {
    string name;
    size_t vcpus, memory;
};

class Bag {
    vector<double> length;      // by task: its longest run time
    vector<long long> submitted;
    size_t memory = 0;          // that a place has to have
    double time;                // that there is for the work
    vector<Type> spot, on_demand;  // each type as often as it can still be had
    vector<Type> all_on_demand;  // as often as it can be had at all
    double missing = 0;         // places that are asked for again
    vector<size_t> waiting;     // tasks on no VM
    vector<size_t> ready;       // the VMs that tasks can be started on
    vector<size_t> places;      // by VM: how many tasks it can run
    vector<vector<size_t>> tasks;  // by VM: those on it
    string decisions;

    void decide(const string& decision, const string& what) {
        if (!decisions.empty()) decisions += ',';
        decisions += "{\"decision\":\"" + decision + "\"," + what + '}';
    }

    // Each type as often as it can be had in a market, the cheapest first.
    static vector<Type> offered(const Json& types, const Json& first, const string& market) {
        vector<std::pair<double, const Json*>> sold;
        for (const Json& type : types.items) {
            const Json* runtime = first.find(type["name"].text);
            if (type[market].is_null() || !type["burstable"].is_null() || !runtime) continue;
            const double price = type[market].number;
            sold.emplace_back(price * runtime->number / type["vcpus"].number, &type);
        }
        const auto cheaper = [](auto& one, auto& other) { return one.first < other.first; };
        std::stable_sort(sold.begin(), sold.end(), cheaper);
        vector<Type> all;
        for (const auto& [cost, type] : sold) {
            const Type one{(*type)["name"].text, size_t((*type)["vcpus"].number),
                           size_t((*type)["memory"].number)};
            all.insert(all.end(), (*type)["limits"][market].number, one);
        }
        return all;
    }

    // Launches VMs with so many places; returns how many are missing.
    double hire(const string& market, vector<Type>& offers, double wanted) {
        for (; wanted > 0 && !offers.empty(); wanted -= places.back()) {
            const Type type = offers.front();
            offers.erase(offers.begin());
            decide("launch", "\"vm\":" + std::to_string(places.size()) + ",\"kind\":\"" + type.name +
                                 "\",\"market\":\"" + market + '"');
            places.push_back(std::min(type.vcpus, type.memory / memory));
            tasks.emplace_back();
        }
        return wanted;
    }

    // What can't be had now is asked for again in a minute.
    void replace(long long now, double wanted) {
        missing = hire("on-demand", on_demand, missing + wanted);
        if (missing > 0) decide("wake", "\"at\":" + std::to_string(now + 60'000'000) + ",\"token\":0");
    }

    // Starts what waits where there is a place, and gives idle VMs back.
    void put(long long now, const vector<size_t>& more) {
        waiting.insert(waiting.end(), more.begin(), more.end());
        std::stable_sort(waiting.begin(), waiting.end(),
                         [this](size_t one, size_t other) { return length[one] > length[other]; });
        const bool all_there = *std::max_element(submitted.begin(), submitted.end()) <= now;
        for (const size_t vm : vector<size_t>(ready)) {
            while (!waiting.empty() && tasks[vm].size() < places[vm]) {
                tasks[vm].push_back(waiting.front());
                decide("start", "\"task\":" + std::to_string(waiting.front()) +
                                    ",\"vm\":" + std::to_string(vm));
                waiting.erase(waiting.begin());
            }
            if (tasks[vm].empty() && all_there) {
                leave(ready, vm);
                decide("terminate", "\"vm\":" + std::to_string(vm));
            }
        }
    }

    static void leave(vector<size_t>& all, size_t one) {
        all.erase(std::remove(all.begin(), all.end(), one), all.end());
    }

    void begin(long long now) {
        // Places enough to do all work in half of the time that there is.
        const double work = std::accumulate(length.begin(), length.end(), 0.0);
        hire("on-demand", on_demand, hire("spot", spot, 2 * work / time));
        for (const long long at : std::set<long long>(submitted.begin(), submitted.end())) {
            if (at == now) continue;
            decide("wake", "\"at\":" + std::to_string(at) + ",\"token\":" + std::to_string(at));
        }
        put(now, come(now));
    }

    vector<size_t> come(long long at) const {
        vector<size_t> tasks;
        for (size_t task = 0; task < submitted.size(); ++task) {
            if (submitted[task] == at) tasks.push_back(task);
        }
        return tasks;
    }

    void woken(long long now, long long token) {
        if (token != 0) return put(now, come(token));
        on_demand = all_on_demand;
        replace(now, 0);
    }

    void lost(long long now, size_t vm) {
        leave(ready, vm);
        replace(now, tasks[vm].size());
        put(now, std::exchange(tasks[vm], {}));
    }

public:
    explicit Bag(const Json& hello) {
        const Json& types = hello["catalogue"]["types"];
        const vector<Json>& all = hello["bag"]["tasks"].items;
        for (const Json& task : all) {
            long long longest = 0;
            for (const Json& runtime : task["runtime"].items) longest = std::max(longest, runtime.number);
            length.push_back(longest);
            memory = std::max(memory, size_t(task["memory"].number));
            const Json* at = task.find("submitted");
            submitted.push_back(at ? at->number : 0);
        }
        time = hello["bag"]["deadline"].number - hello["catalogue"]["boot"].number;
        spot = offered(types, all.front()["runtime"], "spot");
        on_demand = all_on_demand = offered(types, all.front()["runtime"], "on_demand");
    }

    void hear(long long now, const Json& notice) {
        const string& kind = notice["notice"].text;
        const auto field = [&notice](const char* key) { return size_t(notice[key].number); };
        if (kind == "begin") {
            begin(now);
        } else if (kind == "wake") {
            woken(now, notice["token"].number);
        } else if (kind == "vm-ready") {
            ready.push_back(field("vm"));
            put(now, {});
        } else if (kind == "vm-lost") {
            lost(now, field("vm"));
        } else if (kind == "vm-hibernated") {
            decide("terminate", "\"vm\":" + std::to_string(field("vm")));
            lost(now, field("vm"));
        } else if (kind == "launch-refused") {
            replace(now, places[field("vm")]);
        } else if (kind == "task-finished") {
            leave(tasks[field("vm")], field("task"));
            put(now, {});
        } else if (kind == "task-failed") {
            leave(tasks[field("vm")], field("task"));
            put(now, {field("task")});
        } else if (kind == "rejected") {
            std::cerr << "rejected at " << now << ": " << notice["why"].text << std::endl;
        }
    }

    string answer() { return "{\"decisions\":[" + std::exchange(decisions, "") + "]}"; }
};

int main() {
    const auto next = [](Json& json) {
        string line;
        if (!std::getline(std::cin, line)) return false;
        const char* at = line.c_str();
        json = read(at);
        return true;
    };
    std::ios::sync_with_stdio(false);
    Json line;
    if (!next(line)) return 1;
    Bag bag(line["hello"]);
    std::cout << "{\"hello\":{\"protocol\":1}}" << std::endl;
    while (next(line)) {
        for (const Json& notice : line["notices"].items) bag.hear(line["now"].number, notice);
        std::cout << bag.answer() << std::endl;
    }
}
