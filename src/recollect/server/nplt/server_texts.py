"""What an NPLT server says in words, in English and Chinese.

History as text is always in the words that clients of the seed's server know.
"""

from __future__ import annotations

import msgspec


class ServerTexts(msgspec.Struct, frozen=True):
    welcome: str = "Welcome to recollect. Session: {id}"
    hello_first: str = "recollect: this server wants a token; send HELLO with it first"
    thinking: str = "thinking"
    generating: str = "generating the answer"
    void: str = "[the connection to the model broke; what stands above is void, it begins again]"
    stored: str = "[the answer as it is stored:]"
    interrupted: str = "the answer was interrupted; what came of it is stored"
    problem: str = "error: {problem}"
    forked: str = "another client wrote to this session; it goes on in session {id}"
    switched: str = "Switched to session {id}: {name}"
    created: str = "New session: {id}"
    cleared: str = "Cleared: new session {id}; the old one is kept as {old}"
    renamed: str = "Session {id} is now called: {name}"
    deleted: str = "Session {id} is in the trash"
    deleted_current: str = "Session {id} is in the trash; new session: {new}"
    model: str = "The model is now {model}"
    udp: str = "UDP is not used; downloads are offered over HTTP"
    uploading: str = "Receiving {name}: {size}"
    uploaded: str = "Received {name} ({size}); it goes with your next message"
    sessions: str = "Sessions"
    no_sessions: str = "There are no sessions yet"
    more_sessions: str = 'more: {{"offset": {offset}}}'
    untitled: str = "(untitled)"
    empty: str = "empty"
    entries: str = "{count} entries"
    stopping: str = "recollect: the server stops; what came of an answer is stored"
    idle: str = "recollect: nothing came for {seconds:g} s; connect again"
    slow: str = "recollect: a frame was not complete after {seconds:g} s; the connection is closed"
    full: str = "recollect: {count} connections are open, which is the limit; try again later"
    too_fast: str = "too many frames or bytes in a second; they are read more slowly now"


ENGLISH = ServerTexts()
CHINESE = ServerTexts(
    welcome="欢迎使用 recollect，当前会话: {id}",
    hello_first="recollect: 本服务器需要令牌，请先发送 HELLO",
    thinking="正在思考",
    generating="正在生成回答",
    void="[与模型的连接中断，以上内容作废，重新开始回答]",
    stored="[保存的回答如下:]",
    interrupted="回答已中断，已收到的部分已保存",
    problem="错误: {problem}",
    forked="另一个客户端写入了此会话，对话在会话 {id} 中继续",
    switched="已切换到会话: {name} ({id})",
    created="已创建新会话: {id}",
    cleared="已清空: 新会话 {id}，原会话保留为 {old}",
    renamed="会话 {id} 已重命名为: {name}",
    deleted="会话 {id} 已移到回收站",
    deleted_current="会话 {id} 已移到回收站，新会话: {new}",
    model="已切换到模型: {model}",
    udp="不使用 UDP，文件通过 HTTP 下载",
    uploading="正在接收 {name}: {size}",
    uploaded="已接收 {name} ({size})，将随下一条消息发送",
    sessions="会话列表",
    no_sessions="暂无会话",
    more_sessions='更多: {{"offset": {offset}}}',
    untitled="(未命名)",
    empty="空",
    entries="{count} 条记录",
    stopping="recollect: 服务器正在停止，已收到的回答已保存",
    idle="recollect: {seconds:g} 秒没有收到消息，请重新连接",
    slow="recollect: {seconds:g} 秒内没有收到完整的帧，连接已关闭",
    full="recollect: 已有 {count} 个连接，达到上限，请稍后再试",
    too_fast="每秒帧数或字节数过多，读取速度已降低",
)
BY_LANGUAGE = {"en": ENGLISH, "zh": CHINESE}
