// What a session asks of an engine: one plan, over the partitions of one table of keys.
#pragma once

#include <cstdint>
#include <limits>

#include "common/columns.hpp"
#include "common/output.hpp"
#include "common/state.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"
#include "session/partitions.hpp"

namespace acep {

// Under a budget of time: matches are walked out of the trails of the nodes, and one node may have very many of them. So many
// may still be walked out; an event that ends matches has one all the same.
struct Walks {
    int64_t left = std::numeric_limits<int64_t>::max();
    int64_t walked = 0;
    int64_t withheld = 0;  // match points of which not all were walked out
    bool any = false;      // the event at hand had one

    bool may() {
        if (left <= 0 && any) return false;
        any = true;
        --left;
        ++walked;
        return true;
    }
};

struct Work {
    int64_t nodes = 0;    // match nodes made
    int64_t touches = 0;  // (node, arc) pairs looked at
    int64_t matches = 0;
};

class Engine {
public:
    Engine(Tables tables, EventClassifier& classifier, Partitions& partitions)
        : tables_(std::move(tables)), classifier_(classifier), partitions_(partitions) {}
    virtual ~Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    const Tables& tables() const { return tables_; }
    virtual Output& output() { return output_; }
    virtual const Work& work() const { return work_; }

    // Whether events of a pattern are to be given to `event`: in no partition, in those where something waits, in all.
    enum Wants : uint8_t { nowhere = 0, where_live = 1, everywhere = 2 };
    Wants wants(uint32_t pattern) {
        if (wanted_.size() <= pattern) [[unlikely]] learn_wants(pattern);
        return static_cast<Wants>(wanted_[pattern]);
    }
    // Whether something waits in a partition; what an engine does not say is true.
    bool live(uint32_t partition) const { return !tells_live_ || (partition < live_.size() && live_[partition] != 0); }

    Walks walks;
    // No more matches than about so many are written before they are taken: an engine that has more of one event is
    // `unfinished`, and goes on with them when it is given that event again.
    static constexpr size_t endless = std::numeric_limits<size_t>::max();
    virtual void flow(size_t most) { full_ = most; }
    virtual bool unfinished() const { return false; }
    int64_t arrived = 0;  // events of the stream so far, with the one that is given

    // One event that it wants, of a partition; events of a stream come in order.
    virtual void event(uint32_t partition, const Event& event) = 0;
    // Time has passed: no event before `clock` will come. Frees what no trajectory needs.
    virtual void advance(int64_t clock) = 0;
    // The stream has ended: everything is decided and given.
    virtual void end() {}
    // Whether nothing is left of a partition at `clock`, so that its number may be given to another key.
    virtual bool idle(uint32_t partition, int64_t clock) = 0;
    virtual void forget(uint32_t partition) = 0;
    // Under a bound on memory: whether there is room for one more partition; an event of a key without one was not let in;
    // whether nodes were given up since this was last asked, so that partitions may be idle.
    virtual bool takes_partition(int64_t) { return true; }
    virtual void passed_over() {}
    virtual bool gave_up() { return false; }
    // The number of the last event of a partition that it took, and all that waits there is given up.
    virtual int64_t seen(uint32_t) const { return -1; }
    virtual void give_up_partition(uint32_t, int64_t) {}
    // Marks the codes of texts that it holds, and adds the ids that it may still give.
    virtual void used_texts(std::vector<uint8_t>&) const {}
    virtual void used_ids(std::vector<int64_t>&) const {}
    // The least id of an event that may still be given, where ids are numbers in the order of the stream.
    virtual int64_t oldest() const { return NEVER; }
    // Its whole state, and that of another engine with the same tables (std::invalid_argument: it is none).
    virtual void dump(Writer&) const { throw std::logic_error("this engine has no state"); }
    virtual void load(Reader&) { throw std::logic_error("this engine has no state"); }
    // Bytes that it holds, roughly.
    virtual int64_t bytes() const = 0;
    // Partial matches whose window is not over at `clock`; those that it holds as one, or only counts together, are one.
    virtual int64_t partial_matches(int64_t clock) const = 0;

protected:
    Tables tables_;
    EventClassifier& classifier_;
    Partitions& partitions_;
    Output output_;
    Work work_;
    size_t full_ = endless;
    bool tells_live_ = false;      // `live_` is kept, and what is not live needs no event that begins nothing
    std::vector<uint8_t> live_;    // by partition

private:
    void learn_wants(uint32_t pattern) {
        while (wanted_.size() <= pattern) {
            auto next = static_cast<uint32_t>(wanted_.size());
            bool found = false;
            for (const State& s : tables_.states) {
                for (const Arc& a : s.arcs) found = found || classifier_.has(next, a.event_class);
            }
            for (const Negation& n : tables_.negations) found = found || classifier_.has(next, n.event_class);
            // Where any event may end what runs wait for: positions pass, and gaps.
            found = found || (tables_.waits() && (tables_.counted || tables_.contiguous()));
            bool begins = !tells_live_;
            for (const Arc& a : tables_.states[0].arcs) begins = begins || classifier_.has(next, a.event_class);
            wanted_.push_back(!found ? nowhere : begins ? everywhere : where_live);
        }
    }
    std::vector<uint8_t> wanted_;
};

}  // namespace acep
