package lint

import (
	"os"
	"strings"
	"testing"
)

// terms are the words with which people describe rate limiters in Chinese, in simplified and in
// traditional characters, and the names that such descriptions give to fields and commands.
const terms = `
限流 速率限制 固定窗口 边界突发 临界问题 滑动窗口计数器 滑动窗口日志 时间窗口 窗口大小 令牌桶 动态令牌桶 桶容量 补充速率 漏桶 流量整形 突发流量 GCRA
INCR EXPIRE ZADD ZREMRANGEBYSCORE ZCARD ZINCRBY ZREVRANGE ZSCORE HGETALL HMSET MGET GETSET INCRBYFLOAT DECRBY LPUSH RPOP LLEN EVALSHA SETNX MULTI PFADD HINCRBY HMGET PEXPIRE LTRIM FIFO
window_start_timestamp current_count previous_count last_refill tokens
暴力破解 防刷 秒杀 爬虫 短信验证码 恶意攻击 滥用 过载 雪崩 公平 发帖 评论 点赞 分享 下载 搜索 上传 邮件 防重复提交 支付 计费
接口限流 服务限流 资源限流 全局限流 多层限流 客户端标识 白名单 黑名单 规则引擎 热更新 灰度 回滚
429 Retry-After X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset 10007 10008
中间件 独立的限流服务 网关 单机限流 Kong Apigee AWS nginx Envoy
分布式限流 分布式计数器 无状态 水平扩展 负载均衡 主从复制 哨兵 故障转移 集群 分片 分区键 一致性哈希 范围分区 热点 最终一致 异步复制
降级 失败放行 失败拒绝 熔断 单点故障 高可用 冗余 原子性 竞争条件 单线程 命令队列 时钟 TTL 过期 持久化
网站访问量 全局唯一 热搜 排行榜 热点商品 用户的点赞 响应时间 错误率 QPS 分级保留 聚合 触发率 告警 可视化
低延迟 高吞吐 内存占用 时间复杂度 误差 memcached DDoS
Rule Policy Limit Granularity Target Identifier Count Expiry Client clientIdentifier ruleContext timestamp resetTime checkRateLimit
請求 使用者 位址 金鑰 標頭 狀態碼 錯誤訊息 精確計數 規則可配置性 使用者層級 端點 演算法 固定視窗 滑動窗口日誌 滑動窗口計數器 重疊比例 填充速率 溢出 突發流量
閾值 剩餘 重置時間 低延遲 高吞吐量 峰值流量 高可用性 容錯 可擴展性 水平擴展 負載均衡器 無狀態設計 準確性 一致性 最終一致性 誤差 分散式 資源消耗 記憶體 快取 降級策略
閘道 微服務 中介軟體 函式庫 計數器 資料庫 伺服器 分區鍵 一致性雜湊 範圍分區 熱點分區 主從複製 異步複製 同步複製 故障切換 競爭條件 單線程 腳本 有序集合 資料結構 過期時間 佇列
標識符 最大請求數 時間窗口的持續時間 限制的依據 規則應用的範圍 時間窗口類型 狀態 已請求次數 客戶端標識符 規則引擎
`

// Who searches the Chinese documentation for a familiar word finds what it is in weir.
func TestTerms(t *testing.T) {
	page, err := os.ReadFile("../../docs/zh/terms.md")
	if err != nil {
		t.Fatal(err)
	}
	for term := range strings.FieldsSeq(terms) {
		if !strings.Contains(string(page), term) {
			t.Errorf("docs/zh/terms.md does not have %s", term)
		}
	}
}
