/** One event of a stream of server-sent events. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/**
 * Takes a stream of server-sent events apart (HTML, 9.2.6), as far as this server writes them: `event` and `data`.
 * Text may come in any pieces.
 */
export class EventParser {
  #rest = "";
  #event = "";
  #data: string[] = [];

  push(text: string): ServerEvent[] {
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#take(line));
  }

  #take(line: string): ServerEvent[] {
    if (line === "") {
      const found = this.#data.length === 0 ? [] : [{ event: this.#event || "message", data: this.#data.join("\n") }];
      this.#event = "";
      this.#data = [];
      return found;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    return [];
  }
}
