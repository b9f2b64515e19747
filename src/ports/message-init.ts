import type { DescMessage, Message, MessageInitShape } from "@bufbuild/protobuf";

/** The plain object from which a message is made: {@link MessageInitShape} without the message itself, so that it can be spread. */
export type MessageInit<Desc extends DescMessage> = Exclude<MessageInitShape<Desc>, Message>;
