import { fstatSync } from "node:fs";
import { pino, type DestinationStream, type Logger as PinoLogger } from "pino";
import type { Logger, LogLevel } from "../../ports/log.ts";
import { loggableFields, loggableText } from "./log-fields.ts";
import { humanLine } from "./log-text.ts";

export interface LoggerOptions {
  /** The lowest level that is written. */
  readonly level: LogLevel;
  /** Destination of lines, each with its newline; default: standard error. */
  readonly stream?: { write(line: string): void };
  /** Lines for people instead of JSON; default: when writing to a terminal. */
  readonly human?: boolean;
  /** Lines begin with their priority for journald; default: if standard error is the journal. */
  readonly prioritised?: boolean;
}

export interface AdjustableLogger extends Logger {
  /** Applies to this logger and its children. */
  setLevel(level: LogLevel): void;
}

/**
 * Buffer for a slow reader of standard error, in bytes. When it is full, new lines are dropped: no pod may wait for the
 * log.
 */
const waitingBytes = 4 * 1024 * 1024;

/**
 * Structured logs: one JSON object per line with `level`, `time` (RFC 3339 in UTC) and `msg`, then the fields, with
 * likely secrets masked ({@link loggableFields}). Buffered lines are written when the process exits.
 */
export function createLogger(options: LoggerOptions): AdjustableLogger {
  const { stream } = options;
  const least = { level: options.level };
  const human = options.human ?? (stream === undefined && process.stderr.isTTY);
  const prioritised = options.prioritised ?? (stream === undefined && isJournal());
  const lines = (): DestinationStream => stream ?? standardError();
  const log = pino(
    {
      level: "debug",
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    human ? humanStream(stream ?? process.stderr) : prioritised ? journalStream(lines()) : lines(),
  );
  return {
    ...wrap(log, least),
    setLevel: (level) => {
      least.level = level;
    },
  };
}

function standardError(): DestinationStream {
  return pino.destination({ dest: 2, sync: false, minLength: 0, maxLength: waitingBytes });
}

function humanStream(stream: { write(line: string): unknown }): DestinationStream {
  return { write: (line) => void stream.write(humanLine(line)) };
}

/** sd-daemon(3): journald takes the priority from the number in angle brackets at the beginning of a line. */
const priorities: Readonly<Record<LogLevel, number>> = { debug: 7, info: 6, warn: 4, error: 3 };

function journalStream(stream: { write(line: string): unknown }): DestinationStream {
  return {
    write: (line) => {
      const level = /^\{"level":"(debug|info|warn|error)"/u.exec(line)?.[1] as LogLevel | undefined;
      stream.write(`<${priorities[level ?? "info"]}>${line}`);
    },
  };
}

/** Whether standard error goes to the journal: JOURNAL_STREAM has its original device and inode. */
function isJournal(): boolean {
  const stream = process.env["JOURNAL_STREAM"];
  if (stream === undefined) return false;
  const { dev, ino } = fstatSync(process.stderr.fd);
  return stream === `${dev}:${ino}`;
}

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

function wrap(log: PinoLogger, least: { readonly level: LogLevel }): Logger {
  const write = (level: LogLevel): Logger[LogLevel] => {
    return (message, fields = {}) => {
      if (levels.indexOf(level) < levels.indexOf(least.level)) return;
      log[level](loggableFields(fields), loggableText(message));
    };
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: (fields) => wrap(log.child(loggableFields(fields)), least),
  };
}
