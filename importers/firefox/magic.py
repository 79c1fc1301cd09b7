"""What a profile as JSLB begins with. Every file is asked for it: all else is imported when it is needed."""

JSLB_MAGIC = bytes.fromhex("dcdf4a534c420100")
