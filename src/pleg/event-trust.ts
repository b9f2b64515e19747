/**
 * The state of the runtime's event stream: not open; just opened; open for a while but silent; or proven by an event.
 */
export type EventStream = "none" | "open" | "silent" | "heard";

/**
 * Whether the runtime's event stream is reliable. A stream that has sent an event works. A silent one may work: on a
 * quiet node nothing happens for hours, and some runtimes keep a stream open that never sends anything. So silence is
 * trusted until something happens without an event.
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

  /** A known pod was found changed. Its event may still arrive, and would prove that the stream works. */
  changed(): void {
    if (this.#stream === "open" || this.#stream === "silent") this.#missed = true;
  }
}
