module {
  tt.func public @backward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %cst_0 = arith.constant 1.44269502 : f32
    %cst_1 = arith.constant dense<0> : tensor<128xi32>
    %cst_2 = arith.constant dense<-1.000000e+09> : tensor<128x128xf32>
    %cst_3 = arith.constant dense<16> : tensor<128x1xi32>
    %cst_4 = arith.constant dense<569420461> : tensor<128x1xi32>
    %cst_5 = arith.constant dense<15> : tensor<128x1xi32>
    %cst_6 = arith.constant dense<-749064809> : tensor<128x1xi32>
    %cst_7 = arith.constant dense<16> : tensor<1x128xi32>
    %cst_8 = arith.constant dense<569420461> : tensor<1x128xi32>
    %cst_9 = arith.constant dense<15> : tensor<1x128xi32>
    %cst_10 = arith.constant dense<-749064809> : tensor<1x128xi32>
    %cst_11 = arith.constant dense<-749064809> : tensor<128x128xi32>
    %cst_12 = arith.constant dense<15> : tensor<128x128xi32>
    %cst_13 = arith.constant dense<569420461> : tensor<128x128xi32>
    %c2_i32 = arith.constant 2 : i32
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %c64_i32 = arith.constant 64 : i32
    %cst_14 = arith.constant dense<0.000000e+00> : tensor<128x32x$float>
    %c96_i32 = arith.constant 96 : i32
    %cst_15 = arith.constant dense<0.000000e+00> : tensor<128x32xf32>
    %cst_16 = arith.constant dense<0x7F800000> : tensor<128xf32>
    %c128_i32 = arith.constant 128 : i32
    %c2_i64 = arith.constant 2 : i64
    %c32_i32 = arith.constant 32 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c32_i32 : i32
    %5 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %6 = arith.extsi %length : i32 to i64
    %7 = arith.muli %3, %6 : i64
    %8 = arith.muli %heads, %c96_i32 : i32
    %9 = arith.extsi %8 : i32 to i64
    %10 = arith.muli %7, %9 : i64
    %11 = tt.addptr %qkv, %10 : !tt.ptr<$float>, i64
    %12 = arith.muli %1, %c32_i32 : i32
    %13 = tt.addptr %11, %12 : !tt.ptr<$float>, i32
    %14 = tt.addptr %d_qkv, %10 : !tt.ptr<$float>, i64
    %15 = tt.addptr %14, %12 : !tt.ptr<$float>, i32
    %16 = arith.extsi %4 : i32 to i64
    %17 = arith.muli %7, %16 : i64
    %18 = arith.extsi %12 : i32 to i64
    %19 = arith.addi %17, %18 : i64
    %20 = tt.addptr %out, %19 : !tt.ptr<$float>, i64
    %21 = tt.addptr %d_out, %19 : !tt.ptr<$float>, i64
    %22 = arith.extsi %heads : i32 to i64
    %23 = arith.muli %3, %22 : i64
    %24 = arith.extsi %1 : i32 to i64
    %25 = arith.addi %23, %24 : i64
    %26 = arith.muli %25, %6 : i64
    %27 = tt.addptr %log_sums, %26 : !tt.ptr<f32>, i64
    %28 = arith.muli %3, %c2_i64 : i64
    %29 = arith.muli %28, %6 : i64
    %30 = tt.addptr %groups, %29 : !tt.ptr<i32>, i64
    %31 = arith.muli %2, %heads : i32
    %32 = arith.addi %31, %1 : i32
    %33 = arith.muli %32, %length : i32
    %34 = tt.load %seed : !tt.ptr<i32>
    %35 = arith.shrui %34, %c16_i32 : i32
    %36 = arith.xori %34, %35 : i32
    %37 = arith.muli %36, %c569420461_i32 : i32
    %38 = arith.shrui %37, %c15_i32 : i32
    %39 = arith.xori %37, %38 : i32
    %40 = arith.muli %39, %c-749064809_i32 : i32
    %41 = arith.shrui %40, %c15_i32 : i32
    %42 = arith.xori %40, %41 : i32
    %43 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %44 = tt.load %43 : !tt.ptr<i32>
    %45 = arith.addi %42, %44 : i32
    %46 = arith.shrui %45, %c16_i32 : i32
    %47 = arith.xori %45, %46 : i32
    %48 = arith.muli %47, %c569420461_i32 : i32
    %49 = arith.shrui %48, %c15_i32 : i32
    %50 = arith.xori %48, %49 : i32
    %51 = arith.muli %50, %c-749064809_i32 : i32
    %52 = arith.shrui %51, %c15_i32 : i32
    %53 = arith.xori %51, %52 : i32
    %54 = arith.muli %0, %c128_i32 : i32
    %55 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %56 = tt.splat %54 : i32 -> tensor<128xi32>
    %57 = arith.addi %56, %55 : tensor<128xi32>
    %58 = tt.expand_dims %57 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %59 = tt.splat %length : i32 -> tensor<128x1xi32>
    %60 = arith.cmpi slt, %58, %59 : tensor<128x1xi32>
    %61 = tt.splat %8 : i32 -> tensor<128x1xi32>
    %62 = arith.muli %58, %61 : tensor<128x1xi32>
    %63 = tt.expand_dims %5 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %64 = tt.broadcast %62 : tensor<128x1xi32> -> tensor<128x32xi32>
    %65 = tt.broadcast %63 : tensor<1x32xi32> -> tensor<128x32xi32>
    %66 = arith.addi %64, %65 : tensor<128x32xi32>
    %67 = tt.addptr %13, %4 : !tt.ptr<$float>, i32
    %68 = tt.splat %67 : !tt.ptr<$float> -> tensor<128x32x!tt.ptr<$float>>
    %69 = tt.addptr %68, %66 : tensor<128x32x!tt.ptr<$float>>, tensor<128x32xi32>
    %70 = tt.broadcast %60 : tensor<128x1xi1> -> tensor<128x32xi1>
    %71 = tt.load %69, %70, %cst_14 : tensor<128x32x!tt.ptr<$float>>
    %72 = arith.muli %heads, %c64_i32 : i32
    %73 = tt.addptr %13, %72 : !tt.ptr<$float>, i32
    %74 = tt.splat %73 : !tt.ptr<$float> -> tensor<128x32x!tt.ptr<$float>>
    %75 = tt.addptr %74, %66 : tensor<128x32x!tt.ptr<$float>>, tensor<128x32xi32>
    %76 = tt.load %75, %70, %cst_14 : tensor<128x32x!tt.ptr<$float>>
    %77 = tt.expand_dims %55 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %78 = arith.cmpi slt, %77, %59 : tensor<128x1xi32>
    %79 = arith.muli %77, %61 : tensor<128x1xi32>
    %80 = tt.broadcast %79 : tensor<128x1xi32> -> tensor<128x32xi32>
    %81 = arith.addi %80, %65 : tensor<128x32xi32>
    %82 = tt.splat %4 : i32 -> tensor<128x1xi32>
    %83 = arith.muli %77, %82 : tensor<128x1xi32>
    %84 = tt.broadcast %83 : tensor<128x1xi32> -> tensor<128x32xi32>
    %85 = arith.addi %84, %65 : tensor<128x32xi32>
    %86 = tt.splat %13 : !tt.ptr<$float> -> tensor<128x32x!tt.ptr<$float>>
    %87 = tt.addptr %86, %81 : tensor<128x32x!tt.ptr<$float>>, tensor<128x32xi32>
    %88 = tt.broadcast %78 : tensor<128x1xi1> -> tensor<128x32xi1>
    %89 = tt.load %87, %88, %cst_14 : tensor<128x32x!tt.ptr<$float>>
    %90 = tt.splat %20 : !tt.ptr<$float> -> tensor<128x32x!tt.ptr<$float>>
    %91 = tt.addptr %90, %85 : tensor<128x32x!tt.ptr<$float>>, tensor<128x32xi32>
    %92 = tt.load %91, %88, %cst_14 : tensor<128x32x!tt.ptr<$float>>
    %93 = tt.splat %21 : !tt.ptr<$float> -> tensor<128x32x!tt.ptr<$float>>
    %94 = tt.addptr %93, %85 : tensor<128x32x!tt.ptr<$float>>, tensor<128x32xi32>
    %95 = tt.load %94, %88, %cst_14 : tensor<128x32x!tt.ptr<$float>>
    %96 = tt.splat %length : i32 -> tensor<128xi32>
    %97 = arith.cmpi slt, %55, %96 : tensor<128xi32>
    %98 = tt.splat %27 : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %99 = tt.addptr %98, %55 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %100 = tt.load %99, %97, %cst_16 : tensor<128x!tt.ptr<f32>>
    %101 = arith.extf %92 : tensor<128x32x$float> to tensor<128x32xf32>
    %102 = arith.extf %95 : tensor<128x32x$float> to tensor<128x32xf32>
    %103 = arith.mulf %101, %102 : tensor<128x32xf32>
    %104 = "tt.reduce"(%103) <{axis = 1 : i32}> ({
    ^bb0(%arg12: f32, %arg13: f32):
      %209 = arith.addf %arg12, %arg13 : f32
      tt.reduce.return %209 : f32
    }) : (tensor<128x32xf32>) -> tensor<128xf32>
    %105 = tt.splat %33 : i32 -> tensor<128xi32>
    %106 = arith.addi %105, %55 : tensor<128xi32>
    %107 = tt.trans %89 {order = array<i32: 1, 0>} : tensor<128x32x$float> -> tensor<32x128x$float>
    %108 = tt.dot %71, %107, %cst, inputPrecision = tf32 : tensor<128x32x$float> * tensor<32x128x$float> -> tensor<128x128xf32>
    %109 = arith.mulf %scale, %cst_0 : f32
    %110 = tt.splat %109 : f32 -> tensor<128x128xf32>
    %111 = arith.mulf %108, %110 : tensor<128x128xf32>
    %112 = tt.splat %30 : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %113 = tt.addptr %112, %55 : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %114 = tt.load %113, %97, %cst_1 : tensor<128x!tt.ptr<i32>>
    %115 = arith.cmpi slt, %57, %96 : tensor<128xi32>
    %116 = tt.addptr %30, %length : !tt.ptr<i32>, i32
    %117 = tt.splat %116 : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %118 = tt.addptr %117, %57 : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %119 = tt.load %118, %115, %cst_1 : tensor<128x!tt.ptr<i32>>
    %120 = tt.expand_dims %114 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %121 = tt.expand_dims %119 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %122 = tt.broadcast %120 : tensor<1x128xi32> -> tensor<128x128xi32>
    %123 = tt.broadcast %121 : tensor<128x1xi32> -> tensor<128x128xi32>
    %124 = arith.cmpi eq, %122, %123 : tensor<128x128xi32>
    %125 = arith.select %124, %cst, %cst_2 : tensor<128x128xi1>, tensor<128x128xf32>
    %126 = arith.addf %111, %125 : tensor<128x128xf32>
    %127 = tt.expand_dims %100 {axis = 0 : i32} : tensor<128xf32> -> tensor<1x128xf32>
    %128 = tt.broadcast %127 : tensor<1x128xf32> -> tensor<128x128xf32>
    %129 = arith.subf %126, %128 : tensor<128x128xf32>
    %130 = math.exp2 %129 : tensor<128x128xf32>
    %131 = tt.trans %95 {order = array<i32: 1, 0>} : tensor<128x32x$float> -> tensor<32x128x$float>
    %132 = tt.dot %76, %131, %cst, inputPrecision = tf32 : tensor<128x32x$float> * tensor<32x128x$float> -> tensor<128x128xf32>
    %133 = tt.expand_dims %106 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %134 = arith.addi %53, %c1_i32 : i32
    %135 = arith.shrui %134, %c16_i32 : i32
    %136 = arith.xori %134, %135 : i32
    %137 = arith.muli %136, %c569420461_i32 : i32
    %138 = arith.shrui %137, %c15_i32 : i32
    %139 = arith.xori %137, %138 : i32
    %140 = arith.muli %139, %c-749064809_i32 : i32
    %141 = arith.shrui %140, %c15_i32 : i32
    %142 = arith.xori %140, %141 : i32
    %143 = tt.splat %142 : i32 -> tensor<1x128xi32>
    %144 = arith.addi %133, %143 : tensor<1x128xi32>
    %145 = arith.shrui %144, %cst_7 : tensor<1x128xi32>
    %146 = arith.xori %144, %145 : tensor<1x128xi32>
    %147 = arith.muli %146, %cst_8 : tensor<1x128xi32>
    %148 = arith.shrui %147, %cst_9 : tensor<1x128xi32>
    %149 = arith.xori %147, %148 : tensor<1x128xi32>
    %150 = arith.muli %149, %cst_10 : tensor<1x128xi32>
    %151 = arith.shrui %150, %cst_9 : tensor<1x128xi32>
    %152 = arith.xori %150, %151 : tensor<1x128xi32>
    %153 = arith.addi %53, %c2_i32 : i32
    %154 = arith.shrui %153, %c16_i32 : i32
    %155 = arith.xori %153, %154 : i32
    %156 = arith.muli %155, %c569420461_i32 : i32
    %157 = arith.shrui %156, %c15_i32 : i32
    %158 = arith.xori %156, %157 : i32
    %159 = arith.muli %158, %c-749064809_i32 : i32
    %160 = arith.shrui %159, %c15_i32 : i32
    %161 = arith.xori %159, %160 : i32
    %162 = tt.splat %161 : i32 -> tensor<128x1xi32>
    %163 = arith.addi %58, %162 : tensor<128x1xi32>
    %164 = arith.shrui %163, %cst_3 : tensor<128x1xi32>
    %165 = arith.xori %163, %164 : tensor<128x1xi32>
    %166 = arith.muli %165, %cst_4 : tensor<128x1xi32>
    %167 = arith.shrui %166, %cst_5 : tensor<128x1xi32>
    %168 = arith.xori %166, %167 : tensor<128x1xi32>
    %169 = arith.muli %168, %cst_6 : tensor<128x1xi32>
    %170 = arith.shrui %169, %cst_5 : tensor<128x1xi32>
    %171 = arith.xori %169, %170 : tensor<128x1xi32>
    %172 = tt.broadcast %152 : tensor<1x128xi32> -> tensor<128x128xi32>
    %173 = tt.broadcast %171 : tensor<128x1xi32> -> tensor<128x128xi32>
    %174 = arith.xori %172, %173 : tensor<128x128xi32>
    %175 = arith.muli %174, %cst_13 : tensor<128x128xi32>
    %176 = arith.shrui %175, %cst_12 : tensor<128x128xi32>
    %177 = arith.xori %175, %176 : tensor<128x128xi32>
    %178 = arith.muli %177, %cst_11 : tensor<128x128xi32>
    %179 = tt.splat %threshold : i32 -> tensor<128x128xi32>
    %180 = arith.cmpi uge, %178, %179 : tensor<128x128xi32>
    %181 = tt.splat %factor : f32 -> tensor<128x128xf32>
    %182 = arith.mulf %130, %181 : tensor<128x128xf32>
    %183 = arith.select %180, %182, %cst : tensor<128x128xi1>, tensor<128x128xf32>
    %184 = arith.mulf %132, %181 : tensor<128x128xf32>
    %185 = arith.select %180, %184, %cst : tensor<128x128xi1>, tensor<128x128xf32>
    %186 = tt.expand_dims %104 {axis = 0 : i32} : tensor<128xf32> -> tensor<1x128xf32>
    %187 = tt.broadcast %186 : tensor<1x128xf32> -> tensor<128x128xf32>
    %188 = arith.subf %185, %187 : tensor<128x128xf32>
    %189 = arith.mulf %130, %188 : tensor<128x128xf32>
    %190 = tt.splat %scale : f32 -> tensor<128x128xf32>
    %191 = arith.mulf %189, %190 : tensor<128x128xf32>
    %192 = arith.truncf %183 : tensor<128x128xf32> to tensor<128x128x$float>
    %193 = arith.truncf %191 : tensor<128x128xf32> to tensor<128x128x$float>
    %194 = tt.dot %192, %95, %cst_15, inputPrecision = tf32 : tensor<128x128x$float> * tensor<128x32x$float> -> tensor<128x32xf32>
    %195 = tt.dot %193, %89, %cst_15, inputPrecision = tf32 : tensor<128x128x$float> * tensor<128x32x$float> -> tensor<128x32xf32>
    %196 = tt.splat %15 : !tt.ptr<$float> -> tensor<128x32x!tt.ptr<$float>>
    %197 = tt.addptr %196, %81 : tensor<128x32x!tt.ptr<$float>>, tensor<128x32xi32>
    %198 = tt.trans %193 {order = array<i32: 1, 0>} : tensor<128x128x$float> -> tensor<128x128x$float>
    %199 = tt.dot %198, %71, %cst_15, inputPrecision = tf32 : tensor<128x128x$float> * tensor<128x32x$float> -> tensor<128x32xf32>
    %200 = arith.truncf %199 : tensor<128x32xf32> to tensor<128x32x$float>
    tt.store %197, %200, %88 : tensor<128x32x!tt.ptr<$float>>
    %201 = tt.addptr %15, %4 : !tt.ptr<$float>, i32
    %202 = tt.splat %201 : !tt.ptr<$float> -> tensor<128x32x!tt.ptr<$float>>
    %203 = tt.addptr %202, %66 : tensor<128x32x!tt.ptr<$float>>, tensor<128x32xi32>
    %204 = arith.truncf %195 : tensor<128x32xf32> to tensor<128x32x$float>
    tt.store %203, %204, %70 : tensor<128x32x!tt.ptr<$float>>
    %205 = tt.addptr %15, %72 : !tt.ptr<$float>, i32
    %206 = tt.splat %205 : !tt.ptr<$float> -> tensor<128x32x!tt.ptr<$float>>
    %207 = tt.addptr %206, %66 : tensor<128x32x!tt.ptr<$float>>, tensor<128x32xi32>
    %208 = arith.truncf %194 : tensor<128x32xf32> to tensor<128x32x$float>
    tt.store %207, %208, %70 : tensor<128x32x!tt.ptr<$float>>
    tt.return
  }
}
