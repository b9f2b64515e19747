/**
 * How the runtime's event stream is: not open; open since a moment ago; open for a while without a word; or one that has
 * given an event.
 */
export type EventStream = "none" | "open" | "silent" | "heard";

/**
 * Whether the runtime's event stream can be relied on. A stream that has given an event works. One that is silent may: on
 * a quiet node nothing happens for hours, and some runtimes keep a stream open on which nothing ever comes. So silence is
 * believed until something has happened without an event.
 */
export class EventTrust {
  #stream: EventStream = "none";
  #missed = false;

  get isReliable(): boolean {
    return this.#stream === "heard" || (this.#stream === "silent" && !this.#missed);
  }

  set(stream: EventStream): void {
    if (stream === "none") this.#missed = false;
    this.#stream = stream;
  }

  /** A pod that was known was found changed. Its event may be on its way, and then says that the stream works. */
  changed(): void {
    if (this.#stream === "open" || this.#stream === "silent") this.#missed = true;
  }
}
