import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Field, podSchema } from "./pod-schema.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * A pod in the form in which Kubernetes' own types read it (`v1.Pod#Unmarshal`): the JSON of the API as protobuf. What the
 * JSON leaves out is left out, as is what this schema does not know.
 * @throws TypeError for a value of another kind than its field's
 */
export function podBytes(pod: object): Uint8Array {
  const writer = new BinaryWriter();
  writeMessage(writer, "Pod", pod);
  return writer.finish();
}

function writeMessage(writer: BinaryWriter, message: string, value: object): void {
  const special = specials[message];
  if (special !== undefined) return special(writer, value);
  const json: JsonObject = { ...value };
  for (const field of podSchema().get(message) ?? []) {
    const own = field.form === "inline" ? json : json[field.name];
    if (own !== undefined && own !== null) writeField(writer, field, own);
  }
}

function writeField(writer: BinaryWriter, { name, number, type, form }: Field, value: unknown): void {
  try {
    if (form === "list") {
      for (const item of asList(value)) writeValue(writer, number, type, item);
    } else if (form === "map") {
      for (const [key, item] of Object.entries(asObject(value))) {
        writer.tag(number, WireType.LengthDelimited).fork();
        writer.tag(1, WireType.LengthDelimited).string(key);
        writeValue(writer, 2, type, item);
        writer.join();
      }
    } else {
      writeValue(writer, number, type, value);
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new TypeError(`${name}: ${error.message}`, { cause: error });
  }
}

function writeValue(writer: BinaryWriter, number: number, type: string, value: unknown): void {
  switch (type) {
    case "string":
      return void writer.tag(number, WireType.LengthDelimited).string(asText(value));
    case "bytes":
      return void writer.tag(number, WireType.LengthDelimited).bytes(Buffer.from(asText(value), "base64"));
    case "bool":
      if (typeof value !== "boolean") throw new TypeError("is not a boolean");
      return void writer.tag(number, WireType.Varint).bool(value);
    case "int32":
      return void writer.tag(number, WireType.Varint).int32(asInteger(value));
    case "int64":
      return void writer.tag(number, WireType.Varint).int64(asInteger(value));
    default:
      writer.tag(number, WireType.LengthDelimited).fork();
      if (type in scalars) scalars[type]?.(writer, value);
      else writeMessage(writer, type, asObject(value));
      writer.join();
  }
}

/** Messages that the API's JSON has as one value. */
const scalars: Readonly<Record<string, (writer: BinaryWriter, value: unknown) => void>> = {
  Quantity: (writer, value) => writeValue(writer, 1, "string", String(asTextOrNumber(value))),
  IntOrString: (writer, value) => {
    const isText = typeof value === "string";
    writeValue(writer, 1, "int64", isText ? 1 : 0);
    if (isText) writeValue(writer, 3, "string", value);
    else writeValue(writer, 2, "int32", value);
  },
  Time: writeTime,
  MicroTime: writeTime,
};

function writeTime(writer: BinaryWriter, value: unknown): void {
  const ms = Date.parse(asText(value));
  if (Number.isNaN(ms)) throw new TypeError("is not a time");
  const seconds = Math.floor(ms / 1000);
  writeValue(writer, 1, "int64", seconds);
  writeValue(writer, 2, "int32", Math.round((ms - seconds * 1000) * 1e6));
}

/** Messages whose JSON is any object, kept as its text. */
const specials: Readonly<Record<string, (writer: BinaryWriter, value: object) => void>> = {
  FieldsV1: (writer, value) => {
    writer.tag(1, WireType.LengthDelimited).bytes(Buffer.from(JSON.stringify(value)));
  },
};

function asList(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError("is not a list");
  return value;
}

function asObject(value: unknown): object {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("is not an object");
  return value;
}

function asText(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("is not a string");
  return value;
}

function asTextOrNumber(value: unknown): string | number {
  return typeof value === "number" ? value : asText(value);
}

function asInteger(value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw new TypeError("is not an integer");
  return value;
}
