export {isObject, parseObject} from '@hearsay/core';
export type {JsonObject} from '@hearsay/core';
