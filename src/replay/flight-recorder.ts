import { errorMessage } from "../base/errors.ts";
import { JournalWriter, type WriterHealth, type WriterLimits } from "../journal/writer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Decision, DecisionRecorder } from "../pods/decision-recorder.ts";
import { recordedActions, recordedInputs } from "./encode.ts";
import { recordingFormat, recordingVersion } from "./format.ts";
import { RecordingFile, type RecordingFiles } from "./recording-file.ts";

export interface RecorderLimits extends WriterLimits {
  /** Of FILE, and again of FILE.1. */
  readonly maxFileBytes: number;
}

const usualLimits: RecorderLimits = {
  maxFileBytes: 32 * 1024 * 1024,
  flushDelayMs: 200,
  retryDelayMs: 10_000,
  maxPendingCharacters: 4 * 1024 * 1024,
  closeDeadlineMs: 2000,
};

interface RecorderOptions {
  readonly files: RecordingFiles;
  readonly clock: Clock;
  readonly log: Logger;
  /** Absolute. */
  readonly path: string;
  /** podwright's. */
  readonly version: string;
  readonly limits?: RecorderLimits;
}

/** One decision as a line of a recording. @param time wall clock ms */
export function recordingLine(decision: Decision, time: number): string {
  const line = { time, ...recordedInputs(decision), decided: recordedActions(decision.actions) };
  return `${JSON.stringify(line)}\n`;
}

/** The header line before the decisions of one run. */
export function recordingHeader(podwright: string, time: number): string {
  return `${JSON.stringify({ format: recordingFormat, version: recordingVersion, podwright, time })}\n`;
}

/** Writes every decision of a node to a file, for `podwright replay`. What goes wrong with it disturbs nothing else. */
export class FlightRecorder implements DecisionRecorder {
  readonly path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #writer: JournalWriter;
  #seq = 0;
  #failed = false;

  private constructor(path: string, clock: Clock, log: Logger, writer: JournalWriter) {
    this.path = path;
    this.#clock = clock;
    this.#log = log;
    this.#writer = writer;
  }

  /** @throws PodwrightError when the file can't be written, or is something else than a recording */
  static async open({
    files,
    clock,
    log,
    path,
    version,
    limits = usualLimits,
  }: RecorderOptions): Promise<FlightRecorder> {
    const { maxFileBytes } = limits;
    const header = recordingHeader(version, clock.now());
    const file = await RecordingFile.open(files, log, path, { header, maxFileBytes });
    const onRecovered = ({ lostLines }: WriterHealth): void =>
      log.info("recording of decisions works again", { path, lostLines });
    return new FlightRecorder(path, clock, log, new JournalWriter(file, clock, limits, onRecovered));
  }

  record(decision: Decision): void {
    try {
      this.#writer.push({ seq: ++this.#seq, text: recordingLine(decision, this.#clock.now()) });
    } catch (error) {
      if (!this.#failed) this.#log.error("cannot record a decision", { error: errorMessage(error) });
      this.#failed = true;
    }
  }

  /** Writes what is left; returns in time even when the disk hangs. */
  async close(): Promise<void> {
    await this.#writer.close();
  }
}
