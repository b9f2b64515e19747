import { onAbort } from "../../base/abort.ts";
import type { JournalEntry } from "../../journal/entry.ts";
import { Follower } from "../../journal/follower.ts";

/** As the production journal has it. */
const maxFollowerEntries = 1000;

/** Sends the entries of one incarnation to followers. */
export class SimFollowers {
  readonly #followers = new Set<Follower>();

  push(entry: JournalEntry): void {
    for (const follower of this.#followers) follower.push(entry);
  }

  follow(signal: AbortSignal): AsyncIterable<JournalEntry> {
    const follower = new Follower(maxFollowerEntries);
    this.#followers.add(follower);
    onAbort(signal, () => {
      this.#followers.delete(follower);
      follower.end();
    });
    return follower.read();
  }
}
