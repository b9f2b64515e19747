import type { Clock } from "../../ports/clock.ts";
import { KubeConnectionError } from "../../ports/kube-api.ts";
import type { Body } from "./body.ts";
import type { WatchSink } from "./watch.ts";

interface Line {
  readonly text: string;
  readonly version: number;
  readonly atMs: number;
  /** The connection breaks in the middle of it. */
  readonly cut: boolean;
}

export interface WatchLinesSettings {
  readonly clock: Clock;
  readonly delayMs: () => number;
  /** Whether the connection breaks at the next line. */
  readonly cuts: () => boolean;
  /** False: nothing arrives any more. */
  readonly isAlive: () => boolean;
  /** Everything up to this version has arrived. */
  readonly onTold: (version: number) => void;
  /** The connection breaks. */
  readonly onCut: (error: Error) => void;
}

/** The lines of a watch in transit: each with its own delay, in order. */
export class WatchLines implements WatchSink {
  readonly #settings: WatchLinesSettings;
  readonly #body: Body;
  readonly #lines: Line[] = [];
  #timer: Disposable | undefined;
  #lastMs = 0;
  #ends = false;

  constructor(settings: WatchLinesSettings, body: Body) {
    this.#settings = settings;
    this.#body = body;
  }

  line(text: string, version: number): void {
    const { clock, delayMs, cuts } = this.#settings;
    // Lines sent together arrive together.
    const isFirst = this.#lines.length === 0;
    this.#lastMs = isFirst ? Math.max(this.#lastMs, clock.monotonic() + delayMs()) : this.#lastMs;
    this.#lines.push({ text, version, atMs: this.#lastMs, cut: cuts() });
    if (isFirst) this.#later();
  }

  end(): void {
    this.#ends = true;
    if (this.#lines.length === 0) this.#body.end();
  }

  /** Nothing arrives any more. */
  stop(): void {
    this.#timer?.[Symbol.dispose]();
    this.#lines.length = 0;
  }

  #later(): void {
    const { clock } = this.#settings;
    this.#timer = clock.timer("an event of a watch", this.#lastMs - clock.monotonic(), () => this.#deliver());
  }

  #deliver(): void {
    const { isAlive, onTold, onCut } = this.#settings;
    if (!isAlive()) return;
    const lines = this.#lines.splice(0);
    const cutAt = lines.findIndex(({ cut }) => cut);
    const whole = cutAt < 0 ? lines : lines.slice(0, cutAt);
    const broken = cutAt < 0 ? "" : (lines[cutAt]?.text ?? "");
    const text = whole.map((line) => `${line.text}\n`).join("") + broken.slice(0, Math.floor(broken.length / 2));
    if (text !== "") this.#body.push(text);
    onTold(Math.max(0, ...whole.map(({ version }) => version)));
    if (cutAt >= 0) onCut(new KubeConnectionError("the connection broke in the middle of a watch"));
    else if (this.#ends) this.#body.end();
  }
}
