import type { Logger } from "../../src/ports/log.ts";

/** A logger that appends `level: message {"field":"value"}` to a list, without debug lines. */
export function toldLog(told: string[]): Logger {
  const log =
    (level: string) =>
    (message: string, fields: object = {}): void =>
      void told.push(`${level}: ${message} ${JSON.stringify(fields)}`);
  const logger: Logger = {
    ...{ debug: () => {}, info: log("info"), warn: log("warn"), error: log("error") },
    child: () => logger,
  };
  return logger;
}
