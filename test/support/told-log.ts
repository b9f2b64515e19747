import type { Logger } from "../../src/ports/log.ts";

/** A log that adds `level: message {"field":"value"}` to what was told; what is for debugging it leaves out. */
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
